package functions

import (
	"errors"
	"fmt"
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/kafka-processor/processor/processor/message"
)

// Expression is a checked CEL expression (https://github.com/google/cel-spec) whose result is a cell of one column.
//
// Most expressions run as closures over the row, which neither box values nor allocate unless they make a string; all others run
// as a cel-go program. Both give the same results and fail for the same inputs.
type Expression struct {
	text    string
	target  message.Column
	scope   Scope
	fast    evaluator   // nil: program is used
	program cel.Program // nil with fast
}

// evaluator computes one value from a frame.
type evaluator func(f *Frame) (message.Value, error)

// Problem is what is wrong with an expression; a Warning does not stop it from running.
type Problem struct {
	Message string
	Warning bool
}

// CompileExpression checks text in scope. target is what the result becomes: Kind its type, Required that null is an error, and
// Name how it is called in messages, such as "column amount". The expression is nil if there is a problem that is no warning.
func CompileExpression(text string, scope Scope, target message.Column) (*Expression, []Problem) {
	env, err := newEnvironment(scope)
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	return env.compile(text, target, nil)
}

// compile is CompileExpression; known are columns that are not null whenever the expression is evaluated.
func (e *environment) compile(text string, target message.Column, known facts) (*Expression, []Problem) {
	checked, problems := e.check(text, known)
	if checked == nil {
		return nil, problems
	}
	if p := assignable(checked.OutputType(), target); p != "" {
		return nil, append(problems, Problem{Message: p})
	}
	x := &Expression{text: text, target: target, scope: e.Scope}
	if n, ok := e.translate(checked.NativeRep().Expr()); ok {
		if x.fast = n.eval; n.bare != nil {
			x.fast = n.bare
		}
		return x, problems
	}
	program, err := e.program(checked)
	if err != nil {
		return nil, append(problems, Problem{Message: err.Error()})
	}
	x.program = program
	return x, problems
}

// program plans the evaluation by cel-go. Its optimizer refuses constants that cannot be converted, which are no error in a branch
// that is never taken; such an expression runs as it is.
func (e *environment) program(checked *cel.Ast) (cel.Program, error) {
	p, err := e.cel.Program(checked, cel.CustomDecoratorV2(orderMaps), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		p, err = e.cel.Program(checked, cel.CustomDecoratorV2(orderMaps))
	}
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return p, nil
}

// Evaluate gives the value of the expression, of its target's kind or null. A string in it may live in the row or in the frame.
// The error names the expression and the cause: an error of CEL, a value that does not fit the target, null where it is required.
func (x *Expression) Evaluate(f *Frame) (message.Value, error) {
	v, err := x.evaluate(f)
	if err != nil {
		return message.Value{}, fmt.Errorf("expression %q: %w", x.text, err)
	}
	return v, nil
}

func (x *Expression) evaluate(f *Frame) (message.Value, error) {
	if x.fast == nil {
		return x.interpret(f)
	}
	v, err := x.fast(f)
	if err != nil || v.Kind == x.target.Kind {
		return v, err
	}
	return fit(v, &x.target)
}

// interpret runs the cel-go program.
func (x *Expression) interpret(f *Frame) (message.Value, error) {
	out, _, err := x.program.Eval(f)
	if err != nil {
		return message.Value{}, err
	}
	v, plain := fromCEL(out)
	if plain {
		return fit(v, &x.target)
	}
	if x.target.Kind != message.JSON {
		return message.Value{}, fmt.Errorf("the result is a %s, but %s is %s", out.Type().TypeName(), x.target.Name,
			x.target.Kind.String())
	}
	text, err := appendJSON(nil, out, 0)
	if err != nil {
		return message.Value{}, err
	}
	return message.JSONValue(string(text)), nil
}

// assignable says why a value of static type t can never become target, or "".
func assignable(t *cel.Type, target message.Column) string {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return ""
	case types.NullTypeKind:
		if target.Required {
			return fmt.Sprintf("is null, but %s is required", target.Name)
		}
		return ""
	}
	if target.Kind == message.JSON {
		switch t.Kind() {
		case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind, types.TimestampKind,
			types.ListKind, types.MapKind:
			return ""
		}
	} else if kindOf(t) == target.Kind {
		return ""
	}
	return fmt.Sprintf("is of type %s, but %s is %s%s", typeName(t), target.Name, target.Kind.String(), conversion(target.Kind))
}

// kindOf is the kind of cells of a static type, Null if there is none.
func kindOf(t *cel.Type) message.Kind {
	switch t.Kind() {
	case types.StringKind, types.BytesKind:
		return message.String
	case types.IntKind:
		return message.Int64
	case types.UintKind:
		return message.Uint64
	case types.DoubleKind:
		return message.Double
	case types.BoolKind:
		return message.Boolean
	case types.TimestampKind:
		return message.Timestamp
	}
	return message.Null
}

func conversion(k message.Kind) string {
	switch k {
	case message.String:
		return "; string(..) converts"
	case message.Int64:
		return "; int(..) converts"
	case message.Uint64:
		return "; uint(..) converts"
	case message.Double:
		return "; double(..) converts"
	case message.Timestamp:
		return "; timestamp(..) converts"
	}
	return ""
}

// typeName names a static type in the words of a spec.
func typeName(t *cel.Type) string {
	if k := kindOf(t); k != message.Null && t.Kind() != types.BytesKind {
		return k.String()
	}
	return t.String()
}

// fit makes v a cell of target. Only values whose type is unknown before they are computed, such as members of JSON documents,
// are ever converted, and only where nothing is lost: 5 becomes 5.0 in a double column, 5.5 in an int64 column is an error.
func fit(v message.Value, target *message.Column) (message.Value, error) {
	switch {
	case v.Kind == message.Null:
		if target.Required {
			return v, fmt.Errorf("the result is null, but %s is required", target.Name)
		}
		return v, nil
	case v.Kind == target.Kind:
		return v, nil
	case target.Kind == message.JSON:
		text, err := appendJSON(nil, toCEL(v), 0)
		return message.JSONValue(string(text)), err
	case v.Kind == message.JSON:
		return fitDocument(v.Str, target)
	}
	if w, ok := exactNumber(v, target.Kind); ok {
		return w, nil
	}
	return v, fmt.Errorf("the result is %s %s, but %s is %s", v.Kind.String(), shown(v), target.Name, target.Kind.String())
}

// fitDocument makes a whole JSON document a cell of another kind.
func fitDocument(text string, target *message.Column) (message.Value, error) {
	parsed := parseJSON(text)
	if err, bad := parsed.(*types.Err); bad {
		return message.Value{}, err
	}
	v, plain := fromCEL(parsed)
	if !plain {
		return v, fmt.Errorf("the result is a JSON %s, but %s is %s", parsed.Type().TypeName(), target.Name, target.Kind.String())
	}
	return fit(v, target)
}

// exactNumber converts between the kinds of numbers; ok is false if v is no number or its value would change.
func exactNumber(v message.Value, to message.Kind) (w message.Value, ok bool) {
	var exact ref.Val
	n, isNumber := toCEL(v).(traits.Comparer)
	if !isNumber || v.Kind != message.Int64 && v.Kind != message.Uint64 && v.Kind != message.Double {
		return v, false
	}
	number := n.(ref.Val)
	switch to {
	case message.Int64:
		exact = number.ConvertToType(types.IntType)
	case message.Uint64:
		exact = number.ConvertToType(types.UintType)
	case message.Double:
		exact = number.ConvertToType(types.DoubleType)
		if d, isDouble := exact.(types.Double); isDouble && math.Abs(float64(d)) > 1<<53 && v.Kind != message.Double {
			return v, false // a comparison would round the integer as the conversion did
		}
	default:
		return v, false
	}
	if types.IsError(exact) || types.Equal(exact, number) != types.True {
		return v, false
	}
	return fromCEL(exact)
}

// shown is a value for an error message, cut where it is long.
func shown(v message.Value) string {
	s := fmt.Sprint(toCEL(v).Value())
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return s
}

// list is an expression whose elements for_each goes through.
type list struct {
	text      string
	split, by evaluator // of a split, whose parts are cut one by one without a list of them
	program   cel.Program
}

// compileList checks an expression that must be a list; element is the type of its elements.
func (e *environment) compileList(text string) (l *list, element *cel.Type, problems []Problem) {
	checked, problems := e.check(text, nil)
	if checked == nil {
		return nil, nil, problems
	}
	t := checked.OutputType()
	switch t.Kind() {
	case types.ListKind:
		element = t.Parameters()[0]
	case types.DynKind:
		element = cel.DynType
	default:
		return nil, nil, append(problems, Problem{Message: fmt.Sprintf("is of type %s, but for_each needs a list", typeName(t))})
	}
	l = &list{text: text}
	if s, by, ok := e.translateSplit(checked.NativeRep().Expr()); ok {
		l.split, l.by = s.eval, by.eval
		return l, element, problems
	}
	program, err := e.program(checked)
	if err != nil {
		return nil, nil, append(problems, Problem{Message: err.Error()})
	}
	l.program = program
	return l, element, problems
}

var errNotList = errors.New("the result is not a list")

// start begins the iteration.
func (l *list) start(f *Frame) (items, error) {
	it, err := l.begin(f)
	if err != nil {
		return items{}, fmt.Errorf("expression %q: %w", l.text, err)
	}
	return it, nil
}

func (l *list) begin(f *Frame) (items, error) {
	if l.program == nil {
		return startSplit(f, l.split, l.by)
	}
	out, _, err := l.program.Eval(f)
	if err != nil {
		return items{}, err
	}
	elements, ok := out.(traits.Lister)
	if !ok {
		return items{}, errNotList
	}
	return items{elements: elements.Iterator()}, nil
}
