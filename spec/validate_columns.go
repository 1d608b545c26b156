package spec

import (
	"fmt"
	"slices"
	"strings"
)

// streams checks the declarations of streams.
func (v *validator) streams() {
	for _, s := range v.s.Streams {
		v.columns(s.Value.Schema, path{"streams", s.Name, "schema"})
		for i, c := range s.Value.Schema {
			if c.Expression != "" {
				v.fault(path{"streams", s.Name, "schema", i, "expression"}, "a stream's column has no expression; that is for group_by_schema")
			}
		}
	}
}

func (v *validator) columns(columns []Column, at path) {
	seen := map[string]bool{}
	for i, c := range columns {
		p := append(slices.Clone(at), i)
		switch {
		case c.Name == "" && c.Type != "":
			v.fault(append(p, "name"), "a column's name must not be empty")
		case seen[c.Name] && c.Name != "":
			v.fault(append(p, "name"), "duplicate column %q", c.Name)
		}
		seen[c.Name] = true
	}
}

func column(s *Stream, name string) *Column {
	for i := range s.Schema {
		if s.Schema[i].Name == name {
			return &s.Schema[i]
		}
	}
	return nil
}

func columnNames(columns []Column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// hasColumn reports a column that a stream lacks.
func (v *validator) hasColumn(stream, name string, at path) *Column {
	s := v.s.Streams.Get(stream)
	if s == nil || len(s.Schema) == 0 {
		return nil
	}
	c := column(s, name)
	if c == nil {
		v.fault(at, "stream %s has no column %q%s", stream, name, didYouMean(name, columnNames(s.Schema)))
	}
	return c
}

// groupBy checks the key's columns against the streams that are read.
func (v *validator) groupBy(name string, c *Computation) {
	inputs := c.InputStreams
	for _, s := range c.Sources {
		inputs = append(slices.Clone(inputs), s.Value.OutputStream)
	}
	v.columns(c.GroupBy, to(name, "group_by_schema"))
	for i, key := range c.GroupBy {
		if key.Expression != "" || key.Name == "" {
			continue
		}
		for _, in := range inputs {
			found := v.hasColumn(in, key.Name, to(name, "group_by_schema", i, "name"))
			if found != nil && found.Type != key.Type && found.Type != "" && key.Type != "" {
				v.fault(to(name, "group_by_schema", i, "type"), "column %q is %s in stream %s, not %s", key.Name, found.Type, in, key.Type)
			}
		}
	}
}

// partitionedBy checks that a source's topic is partitioned by the very key of its computation.
func (v *validator) partitionedBy(name string, c *Computation, source string, s *Source) {
	if s.Kafka == nil {
		return
	}
	at := to(name, "sources", source, "parameters", "partitioned_by")
	by := s.Kafka.PartitionedBy
	for i, col := range by {
		v.hasColumn(s.OutputStream, col, append(slices.Clone(at), i))
	}
	grouped := columnNames(c.GroupBy)
	switch {
	case c.Type != TransformOrderedSource:
		if len(by) > 0 {
			v.fault(at, "partitioned_by is for transform_ordered_source; a %s does not group", c.Type)
		}
	case len(grouped) > 0 && len(by) == 0:
		v.fault(at, "group_by_schema needs partitioned_by: [%s], which promises that the topic is partitioned so; else use a swift_ordered_source and a transform", strings.Join(grouped, ", "))
	case len(grouped) > 0 && !slices.Equal(by, grouped):
		v.fault(at, "partitioned_by [%s] must be the columns of group_by_schema in their order: [%s]", strings.Join(by, ", "), strings.Join(grouped, ", "))
	case len(grouped) == 0 && len(by) > 0:
		v.warn(at, "partitioned_by does nothing without group_by_schema")
	}
}

// deadLetterColumns are the fixed columns of every dead-letter stream.
var deadLetterColumns = []Column{
	{Name: "key", Type: "string"}, {Name: "value", Type: "string"}, {Name: "topic", Type: "string"},
	{Name: "partition", Type: "int64"}, {Name: "offset", Type: "int64"}, {Name: "computation", Type: "string"},
	{Name: "error", Type: "string"}, {Name: "at", Type: "timestamp"},
}

// DeadLetterSchema are the columns that every dead-letter stream must declare. Key and value are the record's bytes, null if
// it had none.
func DeadLetterSchema() []Column { return slices.Clone(deadLetterColumns) }

func (v *validator) deadLetter(name string, c *Computation) {
	dead := c.OnError.DeadLetter
	if dead == "" {
		return
	}
	at := to(name, "on_error", "dead_letter")
	s := v.stream(dead, at)
	if s == nil || len(s.Schema) == 0 {
		return
	}
	same := func(a, b Column) bool { return a.Name == b.Name && a.Type == b.Type }
	if !slices.EqualFunc(s.Schema, deadLetterColumns, same) {
		v.fault(path{"streams", dead, "schema"}, "the dead-letter stream %s must have exactly the columns %s", dead, describeColumns(deadLetterColumns))
		return
	}
	for i, col := range s.Schema {
		if col.Required && (col.Name == "key" || col.Name == "value") {
			v.fault(path{"streams", dead, "schema", i}, "column %q of a dead-letter stream may be null, so it cannot be required", col.Name)
		}
	}
}

func describeColumns(columns []Column) string {
	var out []string
	for _, c := range columns {
		out = append(out, fmt.Sprintf("%s %s", c.Name, c.Type))
	}
	return strings.Join(out, ", ")
}

// oneStringColumn checks what the formats text and raw need.
func (v *validator) oneStringColumn(format, stream string, at path) {
	if format != "text" && format != "raw" {
		return
	}
	s := v.s.Streams.Get(stream)
	if s == nil || len(s.Schema) == 0 || len(s.Schema) == 1 && (s.Schema[0].Type == "string" || s.Schema[0].Type == "") {
		return
	}
	v.fault(at, "format %s needs exactly one column of type string; stream %s has %s", format, stream, describeColumns(s.Schema))
}
