package functions

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// check parses text and checks its types. The result is nil if there is a problem that is no warning.
func (e *environment) check(text string, known facts) (*cel.Ast, []Problem) {
	if strings.TrimSpace(text) == "" {
		return nil, []Problem{{Message: "is empty; write a CEL expression"}}
	}
	parsed, issues := e.cel.Parse(text)
	if issues.Err() != nil {
		return nil, issueProblems(text, issues)
	}
	var problems []Problem
	e.checkColumns(parsed.NativeRep().Expr(), &problems)
	if len(problems) > 0 {
		return nil, problems
	}
	checked, issues := e.cel.Check(parsed)
	if issues.Err() != nil {
		return nil, issueProblems(text, issues)
	}
	w := nullCheck{env: e, seen: facts{}}
	w.walk(checked.NativeRep().Expr(), known)
	return checked, w.problems
}

func issueProblems(text string, issues *cel.Issues) []Problem {
	var problems []Problem
	for _, err := range issues.Errors() {
		problems = append(problems, Problem{Message: issueText(text, err) + hint(err.Message)})
	}
	return problems
}

func issueText(text string, err *common.Error) string {
	if strings.Contains(text, "\n") {
		return fmt.Sprintf("%s (line %d, character %d of the expression)", err.Message, err.Location.Line(), err.Location.Column()+1)
	}
	return fmt.Sprintf("%s (character %d of the expression)", err.Message, err.Location.Column()+1)
}

// hint says what to do about the two faults that nearly everybody makes once. It only adds to the text that is shown.
func hint(text string) string {
	switch {
	case strings.Contains(text, "undeclared reference"):
		return "; columns are written row.NAME, and there are row, timestamp and stream, key with group_by_schema, item with for_each"
	case strings.Contains(text, "'_?_:_'") && strings.Contains(text, "null"):
		return "; to mix a value with null write dyn(VALUE)"
	}
	return ""
}

// checkColumns finds selections of columns that do not exist, so that the nearest name can be told.
func (e *environment) checkColumns(x ast.Expr, problems *[]Problem) {
	if x.Kind() == ast.ComprehensionKind {
		if _, hides := e.columns(x.AsComprehension().IterVar()); hides {
			return // the checker finds out about the rest
		}
	}
	if variable, field, ok := selection(x); ok {
		if s, known := e.columns(variable); known && s.Index(field) < 0 {
			where := "stream " + e.Stream
			if variable == "key" {
				where = "group_by_schema"
			}
			*problems = append(*problems, Problem{Message: fmt.Sprintf("%s has no column %s%s", where, field,
				nearest(field, columnNames(s)))})
		}
	}
	for _, child := range children(x) {
		e.checkColumns(child, problems)
	}
}

// selection splits an expression of the form VARIABLE.FIELD, or has(VARIABLE.FIELD).
func selection(x ast.Expr) (variable, field string, ok bool) {
	if x.Kind() != ast.SelectKind {
		return "", "", false
	}
	s := x.AsSelect()
	if s.Operand().Kind() != ast.IdentKind {
		return "", "", false
	}
	return s.Operand().AsIdent(), s.FieldName(), true
}

func children(x ast.Expr) []ast.Expr {
	switch x.Kind() {
	case ast.CallKind:
		c := x.AsCall()
		if c.IsMemberFunction() {
			return append([]ast.Expr{c.Target()}, c.Args()...)
		}
		return c.Args()
	case ast.SelectKind:
		return []ast.Expr{x.AsSelect().Operand()}
	case ast.ListKind:
		return x.AsList().Elements()
	case ast.MapKind:
		var all []ast.Expr
		for _, entry := range x.AsMap().Entries() {
			m := entry.AsMapEntry()
			all = append(all, m.Key(), m.Value())
		}
		return all
	case ast.StructKind:
		var all []ast.Expr
		for _, field := range x.AsStruct().Fields() {
			all = append(all, field.AsStructField().Value())
		}
		return all
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return nil
}

// facts are columns that are known not to be null, written row.NAME or key.NAME.
type facts map[string]bool

// and gives the facts of both.
func (f facts) and(g facts) facts {
	if len(g) == 0 {
		return f
	}
	all := facts{}
	for name := range f {
		all[name] = true
	}
	for name := range g {
		all[name] = true
	}
	return all
}

// nullCheck warns of columns that may be null and are used where null is an error, unless a test of the column guards the use.
type nullCheck struct {
	env      *environment
	seen     facts
	problems []Problem
}

// column is the name of a column that may be null, if x is one.
func (w *nullCheck) column(x ast.Expr) (string, bool) {
	variable, field, ok := selection(x)
	if !ok || x.AsSelect().IsTestOnly() {
		return "", false
	}
	s, ok := w.env.columns(variable)
	if !ok {
		return "", false
	}
	i := s.Index(field)
	if i < 0 || s.Columns[i].Required {
		return "", false
	}
	return variable + "." + field, true
}

func (w *nullCheck) use(x ast.Expr, known facts) {
	name, ok := w.column(x)
	if !ok || known[name] || w.seen[name] {
		return
	}
	w.seen[name] = true
	w.problems = append(w.problems, Problem{Warning: true, Message: fmt.Sprintf(
		"%s may be null, which is an error here; guard it (%s != null && .., or a conditional) or make the column required", name, name)})
}

func (w *nullCheck) walk(x ast.Expr, known facts) {
	switch x.Kind() {
	case ast.CallKind:
		w.walkCall(x.AsCall(), known)
		return
	case ast.SelectKind:
		w.use(x.AsSelect().Operand(), known)
	case ast.ComprehensionKind:
		w.use(x.AsComprehension().IterRange(), known)
	}
	for _, child := range children(x) {
		w.walk(child, known)
	}
}

func (w *nullCheck) walkCall(c ast.CallExpr, known facts) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		w.walkTerms(args, known, true)
	case operators.LogicalOr:
		w.walkTerms(args, known, false)
	case operators.Conditional:
		w.use(args[0], known)
		w.walk(args[0], known)
		w.walk(args[1], known.and(w.implied(args[0], true)))
		w.walk(args[2], known.and(w.implied(args[0], false)))
	case operators.Equals, operators.NotEquals, "dyn", "type":
		for _, arg := range args {
			w.walk(arg, known)
		}
	case operators.In:
		w.walk(args[0], known)
		w.use(args[1], known)
		w.walk(args[1], known)
	default:
		if c.IsMemberFunction() {
			w.use(c.Target(), known)
			w.walk(c.Target(), known)
		}
		for _, arg := range args {
			w.use(arg, known)
			w.walk(arg, known)
		}
	}
}

// walkTerms goes through the terms of && (outcome true) or || (false). CEL evaluates those in no fixed order: an error in one
// does not count if another one decides the result, so every term guards all others.
func (w *nullCheck) walkTerms(terms []ast.Expr, known facts, outcome bool) {
	for i, term := range terms {
		k := known
		for j, other := range terms {
			if i != j {
				k = k.and(w.implied(other, outcome))
			}
		}
		w.use(term, k)
		w.walk(term, k)
	}
}

// implied are the columns that are not null if x is outcome.
func (w *nullCheck) implied(x ast.Expr, outcome bool) facts {
	if variable, field, ok := selection(x); ok && x.AsSelect().IsTestOnly() {
		if outcome {
			return facts{variable + "." + field: true}
		}
		return nil
	}
	if x.Kind() != ast.CallKind {
		return nil
	}
	c := x.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalNot:
		return w.implied(args[0], !outcome)
	case operators.LogicalAnd, operators.LogicalOr:
		if outcome != (c.FunctionName() == operators.LogicalAnd) {
			return nil
		}
		var all facts
		for _, arg := range args {
			all = w.implied(arg, outcome).and(all)
		}
		return all
	case operators.Equals:
		return w.compared(args, outcome)
	case operators.NotEquals:
		return w.compared(args, !outcome)
	}
	return nil
}

// compared: equal says whether the two are known to be equal. A column that equals a literal other than null, or differs from
// null, is not null.
func (w *nullCheck) compared(args []ast.Expr, equal bool) facts {
	for i, arg := range args {
		name, ok := w.column(arg)
		other := args[1-i]
		if ok && other.Kind() == ast.LiteralKind && (other.AsLiteral() == types.NullValue) != equal {
			return facts{name: true}
		}
	}
	return nil
}

// implied are the columns that are not null whenever the expression text is true.
func (e *environment) implied(text string) facts {
	parsed, issues := e.cel.Parse(text)
	if issues.Err() != nil {
		return nil
	}
	w := nullCheck{env: e}
	return w.implied(parsed.NativeRep().Expr(), true)
}

// outputType is the static type of the expression text; ok is false if it has a fault.
func (e *environment) outputType(text string) (t *cel.Type, ok bool) {
	checked, issues := e.cel.Compile(text)
	if issues.Err() != nil {
		return nil, false
	}
	return checked.OutputType(), true
}
