package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mustParse parses a spec that has no faults.
func mustParse(t *testing.T, data string) *Spec {
	t.Helper()
	s, faults := Parse("f", []byte(data))
	if faults != nil {
		t.Fatalf("faults: %v", faults)
	}
	return s
}

func TestExamplesParseAndOnlyWhatIsUnavailableIsRefused(t *testing.T) {
	t.Parallel()
	refused := map[string][]string{
		"word-count.yaml": nil, "ledger.yaml": nil, "peer-count.yaml": nil, "peer-rekey.yaml": nil,
		"transfers-http.yaml": {"21:15: sink type http is not available in this version"},
		"clicks-clickhouse.yaml": {
			"31:9: window is not available in this version",
			"32:27: allowed_lateness is not available in this version",
			"33:22: late_stream is not available in this version",
			"39:15: sink type clickhouse_batching is not available in this version",
		},
		"refused-two-writers.yaml": {
			"12:5: external_state_managers is not available in this version",
			"13:25: function reshuffle is not available in this version",
			"17:5: external_state_managers is not available in this version",
			"17:31: State table /accounts is claimed for writing by both first and second",
			"18:25: function reshuffle is not available in this version",
		},
	}
	for name, want := range refused {
		file := filepath.Join("testdata", name)
		s, faults := Load(file)
		if faults != nil {
			t.Errorf("%s does not parse: %v", name, faults)
			continue
		}
		var got []string
		for _, f := range Validate(s) {
			if !f.Warning {
				got = append(got, strings.TrimPrefix(f.String(), file+":"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: faults %q, want %q", name, got, want)
		}
	}
}

func TestJoinerBesideAWriterClaimsNothing(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/refused-two-writers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(data), "external_state_managers")
	joined := string(data[:at]) + strings.Replace(string(data[at:]), "external_state_managers", "external_state_joiners", 1)
	if got := allFaults(joined); strings.Contains(got, "claimed") {
		t.Errorf("a joiner claims a table:\n%s", got)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	s := mustParse(t, strings.NewReplacer("jobs: 2\n", "", "kafka: {brokers: [\"127.0.0.1:9092\"]}\n", "", ", format: json}", "}").Replace(base))
	ms := func(n int) Duration { return Duration(time.Duration(n) * time.Millisecond) }
	if s.Jobs != 1 || s.Standbys != 0 {
		t.Errorf("jobs %d, standbys %d", s.Jobs, s.Standbys)
	}
	if k := s.Kafka; !slices.Equal(k.Brokers, []string{"127.0.0.1:9092"}) || k.ReplicationFactor != -1 || k.GroupProtocol != "classic" || k.TLS != nil || k.SASL != nil {
		t.Errorf("kafka %+v", k)
	}
	if want := (Epoch{ms(100), 1, ms(5), 50000, 64 << 20}); s.Epoch != want {
		t.Errorf("epoch %+v, want %+v", s.Epoch, want)
	}
	if want := (Lease{ms(30000), ms(5000), ms(15000), ms(60000), ms(10000)}); s.Lease != want {
		t.Errorf("lease %+v, want %+v", s.Lease, want)
	}
	if want := (StateCache{100 << 20, 1 << 30}); s.JobTracker.StateCache != want {
		t.Errorf("cache %+v, want %+v", s.JobTracker.StateCache, want)
	}
	for name, partitions := range map[string]int{"orders": 0, "keyed": 4, "lines": 16} {
		if got := s.Streams.Get(name).Partitions; got != partitions {
			t.Errorf("stream %s has %d partitions, want %d", name, got, partitions)
		}
	}
	read := s.Computations.Get("read")
	if e := read.OnError; e.Policy != "fail" || e.MaxAttempts != 1 || e.Pause != ms(100) || read.ProcessingMode != "exactly_once" {
		t.Errorf("on_error %+v, mode %q", e, read.ProcessingMode)
	}
	if k := read.Sources.Get("in").Kafka; k.Format != "json" || k.Start != "earliest" || k.Topic != "orders" {
		t.Errorf("source %+v", k)
	}
	if k := s.Computations.Get("sum").Sinks.Get("out").Kafka; k.Format != "json" || !*k.Create || k.Partitions != 0 || !slices.Equal(k.Key, []string{"id"}) {
		t.Errorf("sink %+v", k)
	}
}

func TestOnErrorInAllItsForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]OnError{
		"fail":                      {Policy: "fail", MaxAttempts: 1, Pause: Duration(100 * time.Millisecond)},
		"skip":                      {Policy: "skip", MaxAttempts: 1, Pause: Duration(100 * time.Millisecond)},
		"{dead_letter: d}":          {Policy: "dead_letter", DeadLetter: "d", MaxAttempts: 1, Pause: Duration(100 * time.Millisecond)},
		"{max_attempts: 3}":         {Policy: "fail", MaxAttempts: 3, Pause: Duration(100 * time.Millisecond)},
		"{policy: skip, pause: 2s}": {Policy: "skip", MaxAttempts: 1, Pause: Duration(2 * time.Second)},
	} {
		s := mustParse(t, strings.Replace(base, "type: swift_map", "type: swift_map\n    on_error: "+text, 1))
		got := s.Computations.Get("format").OnError
		if got.Node.Kind == 0 {
			t.Errorf("%s: no position", text)
		}
		if got.Policy != want.Policy || got.DeadLetter != want.DeadLetter || got.MaxAttempts != want.MaxAttempts || got.Pause != want.Pause {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestMapsKeepTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range mustParse(t, base).Streams {
		names = append(names, e.Name)
	}
	if want := []string{"orders", "keyed", "lines", "sums"}; !slices.Equal(names, want) {
		t.Errorf("streams %v, want %v", names, want)
	}
}

func TestAnchorsAndMergeKeysAreExpanded(t *testing.T) {
	t.Parallel()
	s := mustParse(t, strings.NewReplacer(
		"keyed: {schema: [{name: id, type: string}, {name: amount, type: int64}], partitions: 4}", "keyed: &k {schema: &c [{name: id, type: string}], partitions: 4}",
		"lines: {schema: [{name: text, type: string}]}", "lines: {<<: *k, partitions: 5}",
		"sums: {schema: [{name: id, type: string}, {name: n, type: int64}]}", "sums: {<<: [{partitions: 6}, *k], schema: *c}",
	).Replace(base))
	for name, want := range map[string]int{"keyed": 4, "lines": 5, "sums": 6} {
		st := s.Streams.Get(name)
		if st.Partitions != want || len(st.Schema) != 1 || st.Schema[0].Name != "id" {
			t.Errorf("stream %s is %+v, want %d partitions and column id", name, st, want)
		}
	}
}

func TestOwnMembersWinOverMergedOnes(t *testing.T) {
	t.Parallel()
	s := mustParse(t, strings.Replace(base, "streams:\n", "streams:\n  <<: {keyed: {schema: [{name: x, type: json}]}, spare: {schema: [{name: x, type: json}]}}\n", 1))
	if len(s.Streams) != 5 || s.Streams.Get("keyed").Partitions != 4 || s.Streams[4].Name != "spare" {
		t.Errorf("streams %+v", s.Streams)
	}
}

func TestAliasesCannotBlowUpASpec(t *testing.T) {
	t.Parallel()
	bomb := "pipeline: p\ndynamic:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		a := "*a" + string(rune('0'+(i-1)%10))
		name := string(rune('0' + i%10))
		bomb += "  b" + name + string(rune('a'+i)) + ": &a" + name + " [" + strings.Repeat(a+",", 9) + a + "]\n"
	}
	if got := allFaults(bomb); !strings.Contains(got, "more than 200000 values once its aliases are expanded") {
		t.Errorf("faults:\n%.2000s", got)
	}
}

func TestWhatIsNoYAMLHasALine(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":                        "1:1: the spec is empty\n",
		"# only a comment\n":      "1:1: the spec is empty\n",
		"---\n---\n":              "1:1: the spec is empty\n",
		"[a]":                     "1:1: a spec is a mapping with the field pipeline, not a list\n",
		"pipeline: p\njobs: [1\n": "2:1: not YAML: did not find expected ',' or ']'\n",
		"pipeline: p\n\tjobs: 1":  "2:1: not YAML: found a tab character that violates indentation\n",
		"a: *x\n":                 "1:1: not YAML: unknown anchor 'x' referenced\n",
	} {
		if got := allFaults(data); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

func TestUnreadableFileIsAFault(t *testing.T) {
	t.Parallel()
	s, faults := Load(filepath.Join(t.TempDir(), "none.yaml"))
	if s != nil || len(faults) != 1 || !strings.Contains(faults[0].String(), "none.yaml: cannot read the spec: ") {
		t.Errorf("spec %v, faults %v", s, faults)
	}
}

func TestSizesAndDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{"0": 0, "12": 12, "3k": 3000, "2M": 2e6, "1G": 1e9, "4Ki": 4096, "64Mi": 64 << 20, "1Gi": 1 << 30} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.5k", "1 k", "1ki", "1KiB", "9999999999Gi", "99999999999999999999"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
	for size, want := range map[Size]string{0: "0", 1000: "1000", 4096: "4Ki", 64 << 20: "64Mi", 3 << 30: "3Gi"} {
		if got := size.String(); got != want {
			t.Errorf("Size %d is %q, want %q", int64(size), got, want)
		}
	}
	if got := Duration(90 * time.Second).String(); got != "1m30s" {
		t.Errorf("duration %q", got)
	}
}
