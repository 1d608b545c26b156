package functions

import (
	"errors"
	"unicode/utf8"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"github.com/kafka-processor/processor/processor/message"
)

// node is a translated expression. Unless open, each of its values is of kind or null; an open one gives values of any kind.
type node struct {
	eval    evaluator
	kind    message.Kind
	open    bool
	literal *message.Value // nil unless constant
	bare    evaluator      // of a string column: without the check that it is text
}

// is says that all values of n are of kind k or null.
func (n node) is(k message.Kind) bool { return !n.open && n.kind == k }

// translate makes closures of a checked expression; ok is false if some part of it is beyond the subset that is translated. The
// closures keep CEL's semantics to the letter: operators and functions given null fail, && and || absorb errors, arithmetic on
// integers fails on overflow.
func (e *environment) translate(x ast.Expr) (n node, ok bool) {
	switch x.Kind() {
	case ast.LiteralKind:
		v, plain := fromCEL(x.AsLiteral())
		if _, isBytes := x.AsLiteral().(types.Bytes); isBytes || !plain {
			return node{}, false
		}
		return constant(v), true
	case ast.IdentKind:
		return e.translateVariable(x.AsIdent())
	case ast.SelectKind:
		return e.translateSelect(x)
	case ast.CallKind:
		return e.translateCall(x.AsCall())
	}
	return node{}, false
}

func constant(v message.Value) node {
	return node{kind: v.Kind, literal: &v, eval: func(*Frame) (message.Value, error) { return v, nil }}
}

func (e *environment) translateVariable(name string) (node, bool) {
	switch name {
	case "timestamp":
		return node{kind: message.Timestamp, eval: func(f *Frame) (message.Value, error) {
			return message.TimestampValue(f.eventTime), nil
		}}, true
	case "stream":
		return node{kind: message.String, eval: func(f *Frame) (message.Value, error) { return message.StringValue(f.stream), nil }}, true
	case "item":
		if e.item == nil || kindOf(e.item) == message.Null || e.item.Kind() == types.BytesKind || e.item.Kind() == types.TimestampKind {
			return node{}, false
		}
		n := node{kind: kindOf(e.item), eval: func(f *Frame) (message.Value, error) { return f.item, nil }}
		if n.kind == message.String {
			n.bare = n.eval
			n.eval = asText(n.bare)
		}
		return n, true
	}
	return node{}, false
}

func (e *environment) translateSelect(x ast.Expr) (node, bool) {
	variable, field, ok := selection(x)
	if !ok {
		return node{}, false
	}
	schema, ok := e.columns(variable)
	if !ok {
		return node{}, false
	}
	i := schema.Index(field)
	if i < 0 {
		return node{}, false
	}
	n := node{kind: schema.Columns[i].Kind}
	ofKey, present := variable == "key", x.AsSelect().IsTestOnly()
	switch {
	case present && ofKey:
		n.eval = func(f *Frame) (message.Value, error) {
			return message.BooleanValue(f.key.row[i].Kind != message.Null), nil
		}
	case present:
		n.eval = func(f *Frame) (message.Value, error) {
			return message.BooleanValue(f.row.row[i].Kind != message.Null), nil
		}
	case ofKey:
		n.eval = func(f *Frame) (message.Value, error) { return f.key.row[i], nil }
	default:
		n.eval = func(f *Frame) (message.Value, error) { return f.row.row[i], nil }
	}
	switch {
	case present:
		n.kind = message.Boolean
	case n.kind == message.String:
		n.bare = n.eval
		n.eval = asText(n.bare)
	}
	return n, true
}

var errNotText = errors.New("the string is not valid UTF-8, which expressions need; a column can only be taken as it is")

// asText refuses bytes that are no text. Functions of the library would replace them, and different strings would become equal; an
// expression that is nothing but a column takes them as they are.
func asText(column evaluator) evaluator {
	return func(f *Frame) (message.Value, error) {
		v, err := column(f)
		if err == nil && v.Kind == message.String && !utf8.ValidString(v.Str) {
			err = errNotText
		}
		return v, err
	}
}

func (e *environment) translateCall(c ast.CallExpr) (node, bool) {
	name, args := c.FunctionName(), c.Args()
	if name == operators.In {
		return e.translateIn(args)
	}
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	nodes := make([]node, len(args))
	for i, arg := range args {
		n, ok := e.translate(arg)
		if !ok {
			return node{}, false
		}
		nodes[i] = n
	}
	switch name {
	case operators.LogicalAnd:
		return junction(nodes, false)
	case operators.LogicalOr:
		return junction(nodes, true)
	case operators.LogicalNot:
		return negation(nodes[0])
	case operators.Conditional:
		return conditional(nodes[0], nodes[1], nodes[2])
	case operators.Equals, operators.NotEquals:
		return equality(nodes[0], nodes[1], name == operators.Equals)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return comparison(name, nodes[0], nodes[1])
	case operators.Negate:
		return negative(nodes[0])
	case overloads.TypeConvertDyn:
		nodes[0].open, nodes[0].literal = true, nil
		return nodes[0], true
	}
	if n, ok := arithmetic(name, nodes); ok {
		return n, true
	}
	if n, ok := convert(name, nodes); ok {
		return n, true
	}
	return textFunction(name, nodes)
}

// translateIn is x in [literals], all of x's kind.
func (e *environment) translateIn(args []ast.Expr) (node, bool) {
	x, ok := e.translate(args[0])
	if !ok || x.open || args[1].Kind() != ast.ListKind || x.kind == message.JSON {
		return node{}, false
	}
	l := args[1].AsList()
	if len(l.OptionalIndices()) > 0 || l.Size() == 0 { // the library's optimizer drops errors of x for an empty list
		return node{}, false
	}
	members := make([]message.Value, 0, len(l.Elements()))
	for _, element := range l.Elements() {
		n, ok := e.translate(element)
		if !ok || n.literal == nil || !n.is(x.kind) {
			return node{}, false
		}
		members = append(members, *n.literal)
	}
	return membership(x, members), true
}

// largeList is from how many members on a hash table is faster than comparing them all.
const largeList = 9

func membership(x node, members []message.Value) node {
	eval := x.eval
	if len(members) < largeList || x.kind == message.Double { // -0.0 equals 0.0, NaN nothing
		return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
			v, err := eval(f)
			if err != nil {
				return v, err
			}
			for i := range members {
				if equalValues(v, members[i]) {
					return message.BooleanValue(true), nil
				}
			}
			return message.BooleanValue(false), nil
		}}
	}
	table := make(map[message.Value]struct{}, len(members))
	for _, m := range members {
		table[m] = struct{}{}
	}
	return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
		v, err := eval(f)
		if err != nil {
			return v, err
		}
		_, found := table[v]
		return message.BooleanValue(found), nil
	}}
}

// translateSplit recognises TEXT.split(SEPARATOR).
func (e *environment) translateSplit(x ast.Expr) (text, separator node, ok bool) {
	if x.Kind() != ast.CallKind {
		return node{}, node{}, false
	}
	c := x.AsCall()
	if c.FunctionName() != "split" || !c.IsMemberFunction() || len(c.Args()) != 1 {
		return node{}, node{}, false
	}
	text, textOK := e.translate(c.Target())
	separator, separatorOK := e.translate(c.Args()[0])
	return text, separator, textOK && separatorOK && text.is(message.String) && separator.is(message.String)
}
