package processor

import (
	"fmt"
	"strings"
)

// Description is a plan for people and programs.
type Description struct {
	Pipeline string             `json:"pipeline"`
	Jobs     int32              `json:"jobs"`
	Stages   []StageDescription `json:"stages"`
	Topics   []TopicDescription `json:"topics"`
	Edges    []EdgeDescription  `json:"edges"`
	Warnings []string           `json:"warnings,omitempty"`
}

// StageDescription is one stage.
type StageDescription struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind"` // swift or transform
	Computations []string `json:"computations"`
	GroupBy      []string `json:"group_by,omitempty"`
	Partitions   int32    `json:"partitions"` // 0: as many as the source has
	Changelog    string   `json:"changelog,omitempty"`
}

// TopicDescription is one topic.
type TopicDescription struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Partitions int32  `json:"partitions"` // 0: as found, or the broker's default
	Created    bool   `json:"created"`
}

// EdgeDescription is one way of a stream.
type EdgeDescription struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Stream    string `json:"stream"`
	Topic     string `json:"topic"`
	Guarantee string `json:"guarantee"`
}

// Describe lays the plan out.
func (p *Plan) Describe() Description {
	d := Description{Pipeline: p.Pipeline, Jobs: p.Jobs}
	largest := int32(0)
	for _, st := range p.Stages {
		sd := StageDescription{Name: st.Name, Kind: "transform", Partitions: st.Partitions, Changelog: st.StateTopic}
		if st.Swift {
			sd.Kind = "swift"
		}
		for _, n := range st.Nodes {
			sd.Computations = append(sd.Computations, n.Name)
		}
		if st.GroupBy != nil {
			for _, c := range st.GroupBy.Columns {
				sd.GroupBy = append(sd.GroupBy, c.Name)
			}
		}
		largest = max(largest, st.Partitions)
		d.Stages = append(d.Stages, sd)
		p.describeEdges(st, &d)
	}
	for _, n := range p.needs(map[string]int32{}, false) {
		d.Topics = append(d.Topics, TopicDescription{Name: n.name, Kind: n.kind, Partitions: max(n.partitions, 0), Created: n.create})
	}
	if largest > 0 && p.Jobs > largest {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%d jobs, but no internal stream has more than %d partitions: some jobs will have nothing to do", p.Jobs, largest))
	}
	return d
}

func (p *Plan) describeEdges(st *Stage, d *Description) {
	for _, in := range st.Inputs {
		if !in.Internal() {
			d.Edges = append(d.Edges, EdgeDescription{From: "kafka", To: st.Name, Stream: in.Stream, Topic: in.Topic, Guarantee: "exactly once: read committed, offsets in the epoch of group " + in.Group})
		}
	}
	for _, n := range st.Nodes {
		for i, ways := range n.Routes {
			for _, r := range ways {
				e := EdgeDescription{From: n.Name, Stream: n.Config.Outputs[i].Name, Topic: r.Topic}
				switch {
				case r.Kind == ToNode:
					e.To, e.Guarantee = st.Nodes[r.Node].Name, "fused: same stage, no topic"
				case r.Kind == ToSink:
					e.To, e.Guarantee = "kafka", "exactly once for read-committed consumers: written in the epoch"
				case st.Swift:
					e.To, e.Guarantee = p.reader(r.Topic), "exactly once: sent at once, deduplicated by message id at the reader"
				default:
					e.To, e.Guarantee = p.reader(r.Topic), "exactly once: written in the epoch"
				}
				d.Edges = append(d.Edges, e)
			}
		}
		for _, r := range n.DeadLetter {
			d.Edges = append(d.Edges, EdgeDescription{From: n.Name, To: "dead letters", Stream: n.Computation.OnError.DeadLetter, Topic: r.Topic, Guarantee: "exactly once: written in the epoch"})
		}
	}
}

func (p *Plan) reader(topic string) string {
	for _, st := range p.Stages {
		for _, in := range st.Inputs {
			if in.Topic == topic {
				return st.Name
			}
		}
	}
	return ""
}

// Text is the description for a terminal.
func (d Description) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pipeline %s, %d jobs\n\nstages\n", d.Pipeline, d.Jobs)
	for _, s := range d.Stages {
		partitions := "as many partitions as its source"
		if s.Partitions > 0 {
			partitions = fmt.Sprintf("%d partitions", s.Partitions)
		}
		fmt.Fprintf(&b, "  %s (%s): %s", s.Name, s.Kind, partitions)
		if len(s.Computations) > 1 {
			fmt.Fprintf(&b, ", fused: %s", strings.Join(s.Computations[1:], ", "))
		}
		if len(s.GroupBy) > 0 {
			fmt.Fprintf(&b, ", grouped by %s", strings.Join(s.GroupBy, ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nedges\n")
	for _, e := range d.Edges {
		fmt.Fprintf(&b, "  %s -> %s: stream %s", e.From, e.To, e.Stream)
		if e.Topic != "" {
			fmt.Fprintf(&b, ", topic %s", e.Topic)
		}
		fmt.Fprintf(&b, "\n      %s\n", e.Guarantee)
	}
	b.WriteString("\ntopics\n")
	for _, t := range d.Topics {
		n := "partitions as found"
		if t.Partitions > 0 {
			n = fmt.Sprintf("%d partitions", t.Partitions)
		}
		fmt.Fprintf(&b, "  %s (%s): %s\n", t.Name, t.Kind, n)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", w)
	}
	return b.String()
}
