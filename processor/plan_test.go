package processor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/spec"
)

// planOf plans a spec that must be good.
func planOf(tb testing.TB, name, text string) *Plan {
	tb.Helper()
	s, faults := spec.Parse(name, []byte(text))
	if s == nil || spec.Refused(faults) {
		tb.Fatalf("%s: %v", name, faults)
	}
	if faults = spec.Validate(s); spec.Refused(faults) {
		tb.Fatalf("%s: %v", name, faults)
	}
	p, faults := NewPlan(s)
	if spec.Refused(faults) {
		tb.Fatalf("%s: %v", name, faults)
	}
	return p
}

// sketch is a plan in a few lines: stages with their fused computations, inputs and ways, then the topics that must be there.
func sketch(p *Plan, sources map[string]int32) string {
	var b strings.Builder
	for _, st := range p.Stages {
		kind := "transform"
		if st.Swift {
			kind = "swift"
		}
		fmt.Fprintf(&b, "%d %s %s partitions=%d state=%s\n", st.Index, st.Name, kind, st.Partitions, st.StateTopic)
		for _, in := range st.Inputs {
			fmt.Fprintf(&b, "  reads %s as %s in group %s, key %v, internal=%v\n", in.Topic, in.Stream, in.Group, in.GroupColumns, in.Internal())
		}
		for _, n := range st.Nodes {
			for i, ways := range n.Routes {
				for _, r := range ways {
					fmt.Fprintf(&b, "  %s: %s -> %s\n", n.Name, n.Config.Outputs[i].Name, way(st, r))
				}
			}
			for _, r := range n.DeadLetter {
				fmt.Fprintf(&b, "  %s: failed -> %s\n", n.Name, way(st, r))
			}
		}
	}
	for _, n := range p.needs(sources, false) {
		fmt.Fprintf(&b, "topic %s %s partitions=%d create=%v policy=%s\n", n.name, n.kind, n.partitions, n.create, n.configs["cleanup.policy"])
	}
	return b.String()
}

func way(st *Stage, r Route) string {
	switch r.Kind {
	case ToNode:
		return fmt.Sprintf("fused %s input %d", st.Nodes[r.Node].Name, r.Input)
	case ToSink:
		return fmt.Sprintf("sink %s key %v %s", r.Topic, r.Key, r.Format)
	}
	return fmt.Sprintf("topic %s (%d) key %v", r.Topic, r.Partitions, r.Key)
}

// TestPlans compares each spec of testdata/plans with the sketch behind its line of dashes.
func TestPlans(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(b), "\n----\n")
			got := sketch(planOf(t, file, text), map[string]int32{"in": 6})
			if strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%s\n got\n%s\n want\n%s", file, got, want)
			}
		})
	}
}

func TestExampleSpecsPlan(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"word-count": "split swift, count transform word-count.count.state",
		"ledger":     "read swift, balance transform ledger.balance.state",
		"peer-rekey": "rekey swift, count transform peer-rekey.count.state",
		"peer-count": "count transform peer-count.count.state",
	}
	for name, want := range want {
		b, err := os.ReadFile("../examples/specs/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		p := planOf(t, name, string(b))
		var got []string
		for _, st := range p.Stages {
			s := st.Name + " transform " + st.StateTopic
			if st.Swift {
				s = st.Name + " swift" + st.StateTopic
			}
			got = append(got, s)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), want)
		}
		if text := p.Describe().Text(); !strings.Contains(text, "pipeline "+name+", 4 jobs") || !strings.Contains(text, "exactly once") {
			t.Errorf("%s is described as\n%s", name, text)
		}
	}
}

// A stream's settings belong to its topic alone, also where one stream's name begins another's.
func TestTopicSettingsBelongToTheirStreamAlone(t *testing.T) {
	t.Parallel()
	p := planOf(t, "settings", `
pipeline: p
streams:
  done1: {schema: [{name: k, type: string}]}
  done2: {schema: [{name: k, type: string}]}
  in: {schema: [{name: k, type: string}]}
  wordy: {schema: [{name: k, type: string}], partitions: 2}
  word: {schema: [{name: k, type: string}], partitions: 2, topic_settings: {segment.bytes: "1048576"}}
computations:
  s:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: in, parameters: {topic: in, format: json}}}
    process: {function: map, parameters: {outputs: [{stream: wordy, columns: {k: row.k}}, {stream: word, columns: {k: row.k}}]}}
    output_stream_ids: [wordy, word]
  a: {type: transform, input_stream_ids: [wordy], group_by_schema: [{name: k, type: string}], process: {function: map, parameters: {outputs: [{stream: done1, columns: {k: row.k}}]}}, output_stream_ids: [done1], sinks: {o: {type: kafka, input_stream_ids: [done1], parameters: {topic: done1, format: json}}}}
  b: {type: transform, input_stream_ids: [word], group_by_schema: [{name: k, type: string}], process: {function: map, parameters: {outputs: [{stream: done2, columns: {k: row.k}}]}}, output_stream_ids: [done2], sinks: {o: {type: kafka, input_stream_ids: [done2], parameters: {topic: done2, format: json}}}}
`)
	needs := p.needs(map[string]int32{"in": 1}, false)
	for name, want := range map[string]string{"p.wordy": "", "p.word": "1048576"} {
		i := slices.IndexFunc(needs, func(n need) bool { return n.name == name })
		if i < 0 {
			t.Fatalf("no topic %s in %v", name, needs)
		}
		if got := needs[i].configs["segment.bytes"]; got != want {
			t.Errorf("topic %s gets segment.bytes %q, its stream says %q", name, got, want)
		}
	}
}
