package spec

import (
	"slices"
	"time"
)

// computation checks one computation by itself and against the streams it names.
func (v *validator) computation(name string, c *Computation) {
	switch c.Type {
	case SwiftOrderedSource, TransformOrderedSource:
		if len(c.Sources) == 0 {
			v.fault(to(name, "sources"), "a %s needs sources", c.Type)
		}
		if len(c.InputStreams) > 0 {
			v.fault(to(name, "input_stream_ids"), "a %s reads its sources; input_stream_ids is for swift_map and transform", c.Type)
		}
	case SwiftMap, Transform:
		if len(c.InputStreams) == 0 {
			v.fault(to(name, "input_stream_ids"), "a %s needs input_stream_ids", c.Type)
		}
		if len(c.Sources) > 0 {
			v.fault(to(name, "sources"), "a %s reads input_stream_ids; sources are for swift_ordered_source and transform_ordered_source", c.Type)
		}
	default:
		return // Parse has reported it, and nothing else can be said
	}
	if c.Type == SwiftOrderedSource && len(c.GroupBy) > 0 {
		v.fault(to(name, "group_by_schema"), "a swift_ordered_source does not group; group in the transform that reads its output")
	}
	v.function(name, c)
	v.references(name, c)
	v.groupBy(name, c)
	for _, s := range c.Sources {
		v.source(name, c, s.Name, &s.Value)
	}
	for _, s := range c.Sinks {
		v.sink(name, c, s.Name, &s.Value)
	}
	v.deadLetter(name, c)
}

// function checks what the built-in functions need of their computation.
func (v *validator) function(name string, c *Computation) {
	stateful := c.Type == Transform || c.Type == TransformOrderedSource
	if c.Process.Function == "aggregate" {
		switch {
		case !stateful:
			v.fault(to(name, "process", "function"), "aggregate keeps state, which a %s cannot; use a transform", c.Type)
		case len(c.GroupBy) == 0:
			v.fault(to(name, "process", "function"), "aggregate needs group_by_schema, which says by what")
		}
	}
	if c.Type == Transform && len(c.GroupBy) == 0 && c.Process.Function != "aggregate" {
		v.warn(to(name, "type"), "without group_by_schema all messages of this transform go through partition 0")
	}
	if c.ProcessingMode == "at_least_once_consistent" && !stateful {
		v.fault(to(name, "processing_mode"), "processing_mode is for transforms; a %s is exactly once by its ids", c.Type)
	}
	if c.Parameters.RelaxedBatching && c.Type != SwiftMap {
		v.fault(to(name, "parameters", "allow_batching_with_relaxed_guarantees"), "allow_batching_with_relaxed_guarantees is for swift_map only")
	}
}

// references checks that the streams a computation names are declared, each once.
func (v *validator) references(name string, c *Computation) {
	for _, list := range []struct {
		field   string
		streams []string
	}{{"input_stream_ids", c.InputStreams}, {"output_stream_ids", c.OutputStreams}} {
		for i, s := range list.streams {
			at := to(name, list.field, i)
			switch {
			case s == "":
				v.fault(at, "a stream's name must not be empty")
			case slices.Index(list.streams, s) < i:
				v.fault(at, "stream %s is listed twice", s)
			default:
				v.stream(s, at)
			}
		}
	}
}

func (v *validator) source(name string, c *Computation, source string, s *Source) {
	at := to(name, "sources", source)
	v.stream(s.OutputStream, append(slices.Clone(at), "output_stream_id"))
	if s.Cluster != nil && s.Type == "kafka" {
		v.fault(append(slices.Clone(at), "kafka"), "a source of type kafka reads the pipeline's cluster; a kafka block of its own is for kafka_async")
	}
	k := s.Kafka
	if k == nil {
		return
	}
	parameters := append(slices.Clone(at), "parameters")
	in := func(field string) path { return append(slices.Clone(parameters), field) }
	v.kafkaTopic(k.Topic, in("topic"))
	v.oneStringColumn(k.Format, s.OutputStream, in("format"))
	if _, err := time.Parse(time.RFC3339, k.Start); err != nil && k.Start != "earliest" && k.Start != "latest" {
		v.fault(in("start"), "start %q is not earliest, latest or an RFC 3339 time such as 2030-01-31T00:00:00Z", k.Start)
	}
	v.partitionedBy(name, c, source, s)
}

func (v *validator) sink(name string, c *Computation, sink string, s *Sink) {
	at := to(name, "sinks", sink)
	in := func(steps ...any) path { return append(slices.Clone(at), steps...) }
	for i, stream := range s.InputStreams {
		if v.stream(stream, in("input_stream_ids", i)) == nil {
			continue
		}
		if !slices.Contains(c.OutputStreams, stream) && stream != c.OnError.DeadLetter {
			v.fault(in("input_stream_ids", i), "stream %s is not an output of %s; a sink takes output_stream_ids of its own computation", stream, name)
		}
		if slices.Index(s.InputStreams, stream) < i {
			v.fault(in("input_stream_ids", i), "stream %s is listed twice", stream)
		}
	}
	if s.Cluster != nil && s.Type == "kafka" {
		v.fault(in("kafka"), "a sink of type kafka writes to the pipeline's cluster; a kafka block of its own is for kafka_async")
	}
	k := s.Kafka
	if k == nil {
		return
	}
	v.kafkaTopic(k.Topic, in("parameters", "topic"))
	for _, stream := range s.InputStreams {
		v.oneStringColumn(k.Format, stream, in("parameters", "format"))
		for i, col := range k.Key {
			v.hasColumn(stream, col, in("parameters", "key", i))
		}
	}
	for i, col := range k.Key {
		if slices.Index(k.Key, col) < i {
			v.fault(in("parameters", "key", i), "column %q is in the key twice", col)
		}
	}
}
