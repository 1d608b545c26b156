package processor

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
)

// Plan is what a spec becomes: stages, their topics, and the way of every output. It is pure data, made from the spec alone; what
// only the cluster knows (partitions of sources, topic ids) is added by Topology.
type Plan struct {
	Spec     *spec.Spec
	Pipeline string
	Jobs     int32
	Stages   []*Stage // in topological order
}

// Stage is a head computation that reads topics, with every swift_map fused behind it.
type Stage struct {
	Index      int
	Name       string // of the head computation
	Swift      bool   // emits outside the transaction
	Inputs     []*Input
	GroupBy    *message.Schema // nil without
	Partitions int32           // of internal inputs; 0: as many as the source's topic has
	Nodes      []*Node         // the head first
	StateTopic string          // changelog; "" for stages without state
}

// Input is one topic that a stage reads.
type Input struct {
	Index         int
	Topic         string
	Group         string // under which its offsets are committed
	Stream        string
	Schema        *message.Schema
	GroupColumns  []int             // of the schema: the stage's group_by_schema
	Source        *spec.KafkaSource // nil: an internal stream
	SourceName    string
	PartitionedBy bool   // a record must lie in the partition that its key hashes to
	Upstream      *Stage // the stage that writes an internal stream
}

// Internal tells whether the input is a stream of the pipeline itself.
func (in *Input) Internal() bool { return in.Source == nil }

// Node is one computation within a stage.
type Node struct {
	Name        string
	Computation *spec.Computation
	Config      functions.Config
	StreamIndex []int     // of the node's input streams: Config.Inputs
	Routes      [][]Route // by output stream (index into Config.Outputs): where its rows go
	DeadLetter  []Route   // where failed input goes
}

// RouteKind is where a row goes.
type RouteKind uint8

// The kinds of routes.
const (
	ToStage RouteKind = iota // an internal topic
	ToSink                   // a topic of the user's
	ToNode                   // a fused computation of the same stage
)

// Route is one way of an output stream.
type Route struct {
	Kind       RouteKind
	Stream     string
	Topic      string
	Partitions int32 // ToStage: of the topic
	Schema     *message.Schema
	Key        []int  // columns that make the record's key; nil: none
	Format     string // ToSink
	Node       int    // ToNode: index into Stage.Nodes
	Input      int    // ToNode: index of the stream among the node's inputs
}

// NewPlan plans a valid spec (see spec.Validate). It reports what only planning finds: faults in functions' parameters.
func NewPlan(s *spec.Spec) (*Plan, []spec.Fault) {
	b := planner{plan: &Plan{Spec: s, Pipeline: s.Pipeline, Jobs: int32(s.Jobs)}, schemas: map[string]*message.Schema{}, home: map[string]*Node{}, stage: map[string]*Stage{}}
	b.streams()
	b.stages()
	b.inputs()
	b.routes()
	b.build()
	return b.plan, b.faults
}

type planner struct {
	plan    *Plan
	schemas map[string]*message.Schema
	home    map[string]*Node  // by computation
	stage   map[string]*Stage // by computation
	faults  []spec.Fault
}

func (b *planner) fault(n *yaml.Node, path, format string, args ...any) {
	f := spec.Fault{File: b.plan.Spec.File, Path: path, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	b.faults = append(b.faults, f)
}

func schemaOf(columns []spec.Column) (*message.Schema, error) {
	cols := make([]message.Column, len(columns))
	for i, c := range columns {
		kind, ok := message.ParseKind(c.Type)
		if !ok {
			return nil, fmt.Errorf("unknown column type %q", c.Type)
		}
		cols[i] = message.Column{Name: c.Name, Kind: kind, Required: c.Required}
	}
	return message.NewSchema(cols)
}

func (b *planner) streams() {
	for i := range b.plan.Spec.Streams {
		e := &b.plan.Spec.Streams[i]
		schema, err := schemaOf(e.Value.Schema)
		if err != nil {
			b.fault(e.Node, "streams."+e.Name, "%v", err)
			schema = message.MustSchema()
		}
		b.schemas[e.Name] = schema
	}
}

// fused tells whether a computation runs inside its upstream's stage.
func fused(c *spec.Computation) bool { return c.Type == spec.SwiftMap && len(c.GroupBy) == 0 }

// stages makes the heads first, then adds fused computations behind whoever makes their input, until nothing is left.
func (b *planner) stages() {
	comps := b.plan.Spec.Computations
	for i := range comps {
		e := &comps[i]
		if fused(&e.Value) {
			continue
		}
		// A swift_map that regroups is a hop of its own and is planned as a transform: no chain of swift hops lies before a transform.
		st := &Stage{Index: len(b.plan.Stages), Name: e.Name, Swift: e.Value.Type == spec.SwiftOrderedSource}
		if !st.Swift {
			st.StateTopic = spec.StateTopic(b.plan.Pipeline, e.Name)
		}
		b.plan.Stages = append(b.plan.Stages, st)
		b.add(st, e)
	}
	for range comps {
		for i := range comps {
			e := &comps[i]
			if !fused(&e.Value) || b.home[e.Name] != nil || len(e.Value.InputStreams) == 0 {
				continue
			}
			if up := b.producer(e.Value.InputStreams[0]); up != "" && b.stage[up] != nil {
				b.add(b.stage[up], e)
			}
		}
	}
	b.sort()
}

func (b *planner) add(st *Stage, e *spec.Entry[spec.Computation]) {
	n := &Node{Name: e.Name, Computation: &e.Value}
	n.Config = functions.Config{Function: e.Value.Process.Function, File: b.plan.Spec.File, Node: &e.Value.Process.Node, Parameters: &e.Value.Process.Parameters}
	st.Nodes = append(st.Nodes, n)
	b.home[e.Name], b.stage[e.Name] = n, st
}

// producer is the computation whose process function writes a stream.
func (b *planner) producer(stream string) string {
	for i := range b.plan.Spec.Computations {
		e := &b.plan.Spec.Computations[i]
		if slices.Contains(e.Value.OutputStreams, stream) || e.Value.OnError.DeadLetter == stream {
			return e.Name
		}
	}
	return ""
}

// sort puts stages behind those whose streams they read. The spec is free of cycles.
func (b *planner) sort() {
	var out []*Stage
	done := map[*Stage]bool{}
	var visit func(*Stage)
	visit = func(st *Stage) {
		if done[st] {
			return
		}
		done[st] = true
		for _, s := range st.Nodes[0].Computation.InputStreams {
			if up := b.stage[b.producer(s)]; up != nil {
				visit(up)
			}
		}
		st.Index = len(out)
		out = append(out, st)
	}
	for _, st := range b.plan.Stages {
		visit(st)
	}
	b.plan.Stages = out
}

// readers lists the stages that read an internal stream.
func (b *planner) readers(stream string) []*Stage {
	var out []*Stage
	for _, st := range b.plan.Stages {
		if slices.Contains(st.Nodes[0].Computation.InputStreams, stream) {
			out = append(out, st)
		}
	}
	return out
}

// streamTopic is the topic of an internal stream for one reading stage.
func (b *planner) streamTopic(stream string, reader *Stage) string {
	if len(b.readers(stream)) > 1 {
		return spec.StreamTopic(b.plan.Pipeline, stream, reader.Name)
	}
	return spec.StreamTopic(b.plan.Pipeline, stream, "")
}

func (b *planner) inputs() {
	read := map[string]bool{} // source topics that the pipeline's own group reads already
	for _, st := range b.plan.Stages {
		head := st.Nodes[0]
		c := head.Computation
		if len(c.GroupBy) > 0 {
			schema, err := schemaOf(c.GroupBy)
			if err != nil {
				b.fault(&c.Node, "computations."+st.Name+".group_by_schema", "%v", err)
				schema = message.MustSchema()
			}
			st.GroupBy = schema
		}
		for i := range c.Sources {
			e := &c.Sources[i]
			if e.Value.Kafka == nil {
				continue // of a type that validation refuses
			}
			group := b.plan.Pipeline
			if read[e.Value.Kafka.Topic] {
				group += "." + st.Name
			}
			read[e.Value.Kafka.Topic] = true
			b.input(st, &Input{Topic: e.Value.Kafka.Topic, Group: group, Stream: e.Value.OutputStream, Source: e.Value.Kafka, SourceName: e.Name,
				PartitionedBy: len(e.Value.Kafka.PartitionedBy) > 0})
		}
		for _, s := range c.InputStreams {
			st.Partitions = max(st.Partitions, b.partitions(s))
			b.input(st, &Input{Topic: b.streamTopic(s, st), Group: b.plan.Pipeline, Stream: s, Upstream: b.stage[b.producer(s)]})
		}
	}
	for _, st := range b.plan.Stages {
		for _, n := range st.Nodes[1:] {
			for _, s := range n.Computation.InputStreams {
				n.Config.Inputs = append(n.Config.Inputs, functions.Stream{Name: s, Schema: b.schemas[s]})
			}
		}
	}
}

func (b *planner) input(st *Stage, in *Input) {
	in.Index, in.Schema = len(st.Inputs), b.schemas[in.Stream]
	if in.Schema == nil {
		in.Schema = message.MustSchema() // an unknown stream: validation has said so
	}
	if st.GroupBy != nil {
		for _, c := range st.GroupBy.Columns {
			in.GroupColumns = append(in.GroupColumns, in.Schema.Index(c.Name))
		}
	}
	st.Inputs = append(st.Inputs, in)
	head := st.Nodes[0]
	head.Config.Inputs = append(head.Config.Inputs, functions.Stream{Name: in.Stream, Schema: in.Schema})
	head.Config.GroupBy = st.GroupBy
}

func (b *planner) partitions(stream string) int32 {
	if s := b.plan.Spec.Streams.Get(stream); s != nil && s.Partitions > 0 {
		return int32(s.Partitions)
	}
	return spec.DefaultPartitions
}

func (b *planner) routes() {
	for _, st := range b.plan.Stages {
		for _, n := range st.Nodes {
			for _, s := range n.Computation.OutputStreams {
				n.Config.Outputs = append(n.Config.Outputs, functions.Stream{Name: s, Schema: b.schemas[s]})
				n.Routes = append(n.Routes, b.ways(st, n, s))
			}
			if dl := n.Computation.OnError.DeadLetter; dl != "" {
				n.DeadLetter = b.ways(st, n, dl)
				if len(n.DeadLetter) == 0 {
					n.DeadLetter = []Route{{Kind: ToSink, Stream: dl, Topic: spec.StreamTopic(b.plan.Pipeline, dl, ""), Schema: b.schemas[dl], Format: "json"}}
				}
			}
		}
	}
}

// ways lists where the rows of a stream go.
func (b *planner) ways(st *Stage, n *Node, stream string) []Route {
	var out []Route
	schema := b.schemas[stream]
	if schema == nil {
		return nil
	}
	for _, reader := range b.readers(stream) {
		r := Route{Kind: ToStage, Stream: stream, Topic: b.streamTopic(stream, reader), Partitions: b.partitions(stream), Schema: schema}
		if reader.GroupBy != nil {
			for _, c := range reader.GroupBy.Columns {
				r.Key = append(r.Key, schema.Index(c.Name))
			}
		}
		out = append(out, r)
	}
	for i := range n.Computation.Sinks {
		sink := &n.Computation.Sinks[i].Value
		if sink.Kafka == nil || !slices.Contains(sink.InputStreams, stream) {
			continue
		}
		r := Route{Kind: ToSink, Stream: stream, Topic: sink.Kafka.Topic, Schema: schema, Format: sink.Kafka.Format}
		for _, k := range sink.Kafka.Key {
			r.Key = append(r.Key, schema.Index(k))
		}
		out = append(out, r)
	}
	for i, other := range st.Nodes {
		if in := slices.Index(other.Computation.InputStreams, stream); i > 0 && in >= 0 && fused(other.Computation) {
			out = append(out, Route{Kind: ToNode, Stream: stream, Node: i, Input: in, Schema: schema})
		}
	}
	return out
}

// known tells whether all streams of the node exist.
func (n *Node) known() bool {
	for _, s := range append(slices.Clone(n.Config.Inputs), n.Config.Outputs...) {
		if s.Schema == nil || len(s.Schema.Columns) == 0 {
			return false
		}
	}
	return len(n.Config.Inputs) > 0
}

// build checks the functions' parameters by building each once.
func (b *planner) build() {
	for _, st := range b.plan.Stages {
		for _, n := range st.Nodes {
			if !n.known() {
				continue
			}
			_, faults := functions.Build(n.Config)
			for i := range faults {
				if faults[i].Path == "" {
					faults[i].Path = "computations." + n.Name + ".process"
				}
			}
			b.faults = append(b.faults, faults...)
		}
	}
}
