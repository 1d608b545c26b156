package functions

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
)

// mapParameters are the parameters of map: for each message every output in order, for each element of its for_each in order.
type mapParameters struct {
	Outputs []outputParameters `yaml:"outputs" spec:"required"`
}

// outputParameters says what one output is made of; columns that are not named are null.
type outputParameters struct {
	Node    yaml.Node           `spec:"node"`
	Stream  string              `yaml:"stream" spec:"required"`
	ForEach yaml.Node           `yaml:"for_each"`
	Where   yaml.Node           `yaml:"where"`
	Columns spec.Map[yaml.Node] `yaml:"columns"`
}

// mapFunction is map: it has no state, and the same input always gives the same output.
type mapFunction struct {
	scopes []Scope
	inputs [][]mapOutput // by input stream
	frame  Frame
}

// mapOutput is one output for one input stream.
type mapOutput struct {
	stream  int
	name    string // of the stream
	forEach *list  // nil: one row
	where   *Expression
	columns []mapColumn
	row     message.Row // scratch
}

// mapColumn is a column that has an expression.
type mapColumn struct {
	index int
	value *Expression
}

func buildMap(b *builder) Function {
	var p mapParameters
	b.decode(&p)
	if !b.scopes() {
		return nil
	}
	m := &mapFunction{inputs: make([][]mapOutput, len(b.environments))}
	for i := range p.Outputs {
		o := &p.Outputs[i]
		path := b.parameter(fmt.Sprintf("outputs[%d]", i))
		if o.Stream == "" {
			continue // reported as missing
		}
		stream, ok := b.output(memberNode(&o.Node, "stream"), path+".stream", o.Stream)
		if !ok {
			continue
		}
		b.checkOutputColumns(o, path, &b.cfg.Outputs[stream])
		for input, env := range b.environments {
			m.inputs[input] = append(m.inputs[input], b.mapOutput(env, o, path, stream))
		}
	}
	for _, env := range b.environments {
		m.scopes = append(m.scopes, env.Scope)
	}
	return m
}

func memberNode(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return n
}

// checkOutputColumns reports unknown and missing columns.
func (b *builder) checkOutputColumns(o *outputParameters, path string, to *Stream) {
	given := map[string]bool{}
	for _, c := range o.Columns {
		given[c.Name] = true
		if to.Schema.Index(c.Name) < 0 {
			b.fault(c.Node, path+".columns."+c.Name, "stream %s has no column %s%s", to.Name, c.Name,
				nearest(c.Name, columnNames(to.Schema)))
		}
	}
	for _, c := range to.Schema.Columns {
		if c.Required && !given[c.Name] {
			b.fault(&o.Node, path+".columns", "column %s of stream %s is required, but has no expression", c.Name, to.Name)
		}
	}
}

func (b *builder) mapOutput(env *environment, o *outputParameters, path string, stream int) mapOutput {
	to := &b.cfg.Outputs[stream]
	out := mapOutput{stream: stream, name: to.Name, row: make(message.Row, len(to.Schema.Columns))}
	if o.ForEach.Kind != 0 {
		out.forEach, env = b.forEach(env, &o.ForEach, path+".for_each")
		if env == nil {
			return out
		}
	}
	var known facts
	if o.Where.Kind != 0 {
		target := message.Column{Name: "where", Kind: message.Boolean, Required: true}
		if out.where = b.expression(env, &o.Where, path+".where", target, nil); out.where != nil {
			known = env.implied(out.where.text)
		}
	}
	for i := range o.Columns {
		c := &o.Columns[i]
		index := to.Schema.Index(c.Name)
		if index < 0 {
			continue
		}
		target := to.Schema.Columns[index]
		target.Name = "column " + c.Name
		if x := b.expression(env, &c.Value, path+".columns."+c.Name, target, known); x != nil {
			out.columns = append(out.columns, mapColumn{index: index, value: x})
		}
	}
	return out
}

// forEach compiles a for_each and gives the environment that has item; nil if it cannot be used.
func (b *builder) forEach(env *environment, n *yaml.Node, path string) (*list, *environment) {
	text, ok := b.text(n, path, "for_each")
	if !ok {
		return nil, nil
	}
	l, element, problems := env.compileList(text)
	b.problems(n, path, text, problems)
	if l == nil {
		return nil, nil
	}
	with, err := env.withItem(element)
	if err != nil {
		b.fault(n, path, "%v", err)
		return nil, nil
	}
	return l, with
}

// States is part of Function.
func (m *mapFunction) States() []StateDecl { return nil }

// Version is part of Function.
func (m *mapFunction) Version() string { return "map/1" }

// OnMessage is part of Function.
func (m *mapFunction) OnMessage(msg *Message, _ States, out Output) error {
	m.frame.Begin(msg, &m.scopes[msg.Stream])
	outputs := m.inputs[msg.Stream]
	for i := range outputs {
		o := &outputs[i]
		if err := o.run(&m.frame, out); err != nil {
			return err
		}
		m.frame.release(0)
	}
	return nil
}

func (o *mapOutput) run(f *Frame, out Output) error {
	if o.forEach == nil {
		return o.emit(f, out)
	}
	it, err := o.forEach.start(f)
	if err != nil {
		return fmt.Errorf("for_each of stream %s: %w", o.name, err)
	}
	mark := f.mark() // the elements may live in the arena
	for {
		more, err := it.next(f)
		if err != nil {
			return fmt.Errorf("for_each of stream %s: %w", o.name, err)
		}
		if !more {
			f.clearItem()
			return nil
		}
		if err := o.emit(f, out); err != nil {
			return err
		}
		f.release(mark)
	}
}

// emit makes one row, unless where is false.
func (o *mapOutput) emit(f *Frame, out Output) error {
	if o.where != nil {
		v, err := o.where.Evaluate(f)
		if err != nil {
			return fmt.Errorf("where of stream %s: %w", o.name, err)
		}
		if v.Num == 0 {
			return nil
		}
	}
	for i := range o.columns {
		c := &o.columns[i]
		v, err := c.value.Evaluate(f)
		if err != nil {
			return fmt.Errorf("stream %s: %w", o.name, err)
		}
		o.row[c.index] = v
	}
	return out.Emit(o.stream, o.row)
}
