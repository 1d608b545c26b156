package functions

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
)

// aggregateParameters are the parameters of aggregate.
type aggregateParameters struct {
	Node     yaml.Node           `spec:"node"`
	Output   string              `yaml:"output" spec:"required"`
	Fields   spec.Map[yaml.Node] `yaml:"fields" spec:"required"`
	Emit     string              `yaml:"emit" enum:"update,close" default:"update"`
	Window   yaml.Node           `yaml:"window"`
	Lateness yaml.Node           `yaml:"allowed_lateness"`
	Late     yaml.Node           `yaml:"late_stream"`
	Period   yaml.Node           `yaml:"period"`
}

// aggregateFunction is aggregate: one accumulator for each field and key, and one output for each message. Fields skip nulls.
type aggregateFunction struct {
	scopes []Scope
	fields []aggregateField
	codec  *accumulatorCodec
	output int
	from   []origin // of each output column
	row    message.Row
	frame  Frame
}

// aggregateField is one field with what the message at hand brings to it.
type aggregateField struct {
	name    string
	op      operation
	values  []*Expression // by input stream; nil for a count of messages
	arrived message.Value // null: the field stays as it is
	next    message.Value
	changed bool
}

// origin is where an output column comes from: a group column, a field, or nowhere (both -1).
type origin struct{ group, field int }

func buildAggregate(b *builder) Function {
	var p aggregateParameters
	b.decode(&p)
	b.refuseWindows(&p)
	if b.cfg.GroupBy == nil {
		b.fault(b.cfg.Node, b.cfg.Path+".function", "aggregate needs group_by_schema, which says what belongs together")
	}
	if p.Output == "" || !b.scopes() {
		return nil
	}
	stream, ok := b.output(memberNode(&p.Node, "output"), b.parameter("output"), p.Output)
	if !ok {
		return nil
	}
	to := &b.cfg.Outputs[stream]
	a := &aggregateFunction{output: stream, codec: &accumulatorCodec{}, row: make(message.Row, len(to.Schema.Columns))}
	a.from = slices.Repeat([]origin{{-1, -1}}, len(to.Schema.Columns))
	b.groupColumns(a, memberNode(&p.Node, "output"), to)
	for i := range p.Fields {
		f := &p.Fields[i]
		b.aggregateField(a, f.Name, f.Node, &f.Value, to)
	}
	for i, from := range a.from {
		if c := to.Schema.Columns[i]; c.Required && from.group < 0 && from.field < 0 && !fieldNamed(&p, c.Name) {
			b.fault(memberNode(&p.Node, "fields"), b.parameter("fields"),
				"column %s of stream %s is required, but is neither a group column nor a field", c.Name, to.Name)
		}
	}
	for _, env := range b.environments {
		a.scopes = append(a.scopes, env.Scope)
	}
	return a
}

func fieldNamed(p *aggregateParameters, name string) bool {
	return slices.ContainsFunc(p.Fields, func(e spec.Entry[yaml.Node]) bool { return e.Name == name })
}

// refuseWindows reports the parameters that need windows or timers.
func (b *builder) refuseWindows(p *aggregateParameters) {
	for _, w := range []struct {
		name string
		node *yaml.Node
	}{{"window", &p.Window}, {"allowed_lateness", &p.Lateness}, {"late_stream", &p.Late}, {"period", &p.Period}} {
		if w.node.Kind != 0 {
			b.fault(w.node, b.parameter(w.name), "%s of aggregate is not available in this version", w.name)
		}
	}
	if p.Emit == "close" {
		b.fault(memberNode(&p.Node, "emit"), b.parameter("emit"), "emit: close of aggregate is not available in this version")
	}
}

// groupColumns fits the group columns into the output.
func (b *builder) groupColumns(a *aggregateFunction, n *yaml.Node, to *Stream) {
	if b.cfg.GroupBy == nil {
		return
	}
	for g, c := range b.cfg.GroupBy.Columns {
		i := to.Schema.Index(c.Name)
		if i < 0 {
			b.fault(n, b.parameter("output"), "stream %s has no column %s, which is in group_by_schema%s", to.Name, c.Name,
				nearest(c.Name, columnNames(to.Schema)))
			continue
		}
		if have := to.Schema.Columns[i].Kind; have != c.Kind {
			b.fault(n, b.parameter("output"), "column %s of stream %s is %s, but %s in group_by_schema", c.Name, to.Name,
				have.String(), c.Kind.String())
		}
		a.from[i].group = g
	}
}

// aggregateField reads one field: a mapping of one operation to its expression.
func (b *builder) aggregateField(a *aggregateFunction, name string, at, n *yaml.Node, to *Stream) {
	path := b.parameter("fields." + name)
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		b.fault(n, path, "field %s needs one operation, such as {count: {}} or {sum: row.amount}", name)
		return
	}
	op := operation(n.Content[0].Value)
	if !b.knownOperation(n.Content[0], path, op) {
		return
	}
	i := to.Schema.Index(name)
	if i < 0 {
		b.fault(at, path, "stream %s has no column %s%s", to.Name, name, nearest(name, columnNames(to.Schema)))
		return
	}
	if a.from[i].group >= 0 {
		b.fault(at, path, "field %s has the name of a group column", name)
		return
	}
	column := to.Schema.Columns[i]
	target, fault := operand(op, column)
	if fault != "" {
		b.fault(at, path, "%s of stream %s is %s, but %s", column.Name, to.Name, column.Kind.String(), fault)
		return
	}
	field := aggregateField{name: name, op: op, arrived: message.BooleanValue(true)} // stays, for a count of messages
	value := n.Content[1]
	if op != opCount || value.Kind != yaml.MappingNode || len(value.Content) > 0 {
		for _, env := range b.environments {
			field.values = append(field.values, b.operandExpression(env, value, path+"."+string(op), op, target))
		}
	}
	a.from[i].field = len(a.fields)
	a.fields = append(a.fields, field)
	a.codec.fields = append(a.codec.fields, kept{name: name, op: op, kind: target.Kind})
}

func (b *builder) knownOperation(n *yaml.Node, path string, op operation) bool {
	switch op {
	case opCount, opSum, opMin, opMax, opAvg, opFirst, opLast:
		return true
	case "collect", "count_distinct", "quantile":
		b.fault(n, path, "%s of aggregate is not available in this version", op)
		return false
	}
	known := []string{"count", "sum", "min", "max", "avg", "first", "last"}
	b.fault(n, path, "unknown operation %q%s; known are %s", op, nearest(string(op), known), strings.Join(known, ", "))
	return false
}

// operand is what the expression of a field has to be, given the output column; fault says why the column does not fit.
func operand(op operation, column message.Column) (target message.Column, fault string) {
	target = message.Column{Name: string(op) + " in column " + column.Name, Kind: column.Kind}
	switch op {
	case opCount:
		if column.Kind != message.Int64 {
			fault = "count gives int64"
		}
	case opAvg:
		if column.Kind != message.Double {
			fault = "avg gives double"
		}
	case opSum:
		if column.Kind != message.Int64 && column.Kind != message.Uint64 && column.Kind != message.Double {
			fault = "sum gives int64, uint64 or double"
		}
	case opMin, opMax:
		if column.Kind == message.JSON {
			fault = string(op) + " has no order for it"
		}
	}
	return target, fault
}

// operandExpression compiles the expression of a field. Those of count may have any type, those of avg any number's.
func (b *builder) operandExpression(env *environment, n *yaml.Node, path string, op operation, target message.Column) *Expression {
	text, ok := b.text(n, path, string(op))
	if !ok {
		return nil
	}
	if op == opCount || op == opAvg {
		if t, ok := env.outputType(text); ok {
			if k := kindOf(t); op == opCount && k == message.Null {
				target.Kind = message.JSON
			} else if op == opCount || k == message.Int64 || k == message.Uint64 {
				target.Kind = k
			}
		}
	}
	return b.expression(env, n, path, target, nil)
}

// States is part of Function.
func (a *aggregateFunction) States() []StateDecl {
	return []StateDecl{{Name: "aggregate", Codec: a.codec}}
}

// Version is part of Function.
func (a *aggregateFunction) Version() string { return "aggregate/1" }

// OnMessage is part of Function. Everything that can fail comes before the first change of the state.
func (a *aggregateFunction) OnMessage(m *Message, st States, out Output) error {
	a.frame.Begin(m, &a.scopes[m.Stream])
	for i := range a.fields {
		if err := a.fields[i].evaluate(&a.frame, m.Stream); err != nil {
			return err
		}
	}
	obj, err := st.Modify(0)
	if err != nil {
		return fmt.Errorf("state aggregate: %w", err)
	}
	s := obj.(*accumulators)
	for i := range a.fields {
		if err := a.fields[i].prepare(&s.fields[i]); err != nil {
			return err
		}
	}
	for i := range a.fields {
		a.fields[i].apply(&s.fields[i])
	}
	for i, from := range a.from {
		switch {
		case from.group >= 0:
			a.row[i] = m.KeyRow[from.group]
		case from.field >= 0:
			a.row[i] = s.fields[from.field].result(a.fields[from.field].op)
		}
	}
	return out.Emit(a.output, a.row)
}

// evaluate computes what the message brings.
func (f *aggregateField) evaluate(frame *Frame, input int) error {
	if f.values == nil {
		return nil
	}
	v, err := f.values[input].Evaluate(frame)
	if err != nil {
		return fmt.Errorf("field %s: %w", f.name, err)
	}
	if f.op == opAvg && v.Kind != message.Null {
		v = asDouble(v)
	}
	f.arrived = v
	return nil
}

func asDouble(v message.Value) message.Value {
	switch v.Kind {
	case message.Int64:
		return message.DoubleValue(float64(int64(v.Num)))
	case message.Uint64:
		return message.DoubleValue(float64(v.Num))
	}
	return v
}

// prepare computes the next value of the accumulator.
func (f *aggregateField) prepare(a *accumulator) (err error) {
	f.changed = false
	if f.arrived.Kind == message.Null || f.op == opCount {
		return nil
	}
	if f.next, f.changed, err = a.next(f.op, f.arrived); err != nil {
		return fmt.Errorf("field %s: %w", f.name, err)
	}
	return nil
}

// apply stores what prepare computed.
func (f *aggregateField) apply(a *accumulator) {
	if f.arrived.Kind == message.Null {
		return
	}
	if f.op == opCount || f.op == opAvg {
		a.count++
	}
	if f.changed {
		a.set(f.next)
	}
}

// result is what the field shows.
func (a *accumulator) result(op operation) message.Value {
	switch {
	case op == opCount:
		return message.Int64Value(a.count)
	case op == opAvg && a.count > 0:
		return message.DoubleValue(math.Float64frombits(a.value.Num) / float64(a.count))
	}
	return a.value
}
