package functions

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"github.com/kafka-processor/processor/processor/message"
)

// evaluateText compiles text for a target written like "int64!" and evaluates it on row.
func evaluateText(t *testing.T, text, target, schema string, row ...message.Value) (message.Value, error) {
	t.Helper()
	to := columns(t, "out "+target).Columns[0]
	to.Name = "column out"
	scope := Scope{Stream: "in", Row: columns(t, schema)}
	x, problems := CompileExpression(text, scope, to)
	if x == nil {
		t.Fatalf("%s: %v", text, problems)
	}
	var f Frame
	f.Begin(&Message{Row: row, EventTime: 1_700_000_000_000_001}, &scope)
	v, err := x.Evaluate(&f)
	v.Str = strings.Clone(v.Str)
	return v, err
}

func TestResultsBecomeCellsOfTheirColumn(t *testing.T) {
	t.Parallel()
	document := message.JSONValue(`{"z":1,"a":[1,2.5,"x",null,true],"n":5,"big":18446744073709551615,"o":{"k":"v"}}`)
	text, null := message.StringValue("abc"), message.Value{}
	const schema = "j json, s string, n int64, at timestamp"
	row := []message.Value{document, text, null, {Kind: message.Timestamp, Num: 1_600_000_000_123_456}}
	for _, c := range []struct{ text, target, want string }{
		{"row.s.reverse()", "string", `"cba"`},
		{"row.n", "int64", "null"},
		{"row.n == null ? 0 : row.n + 1", "int64", "0"},
		{"true ? dyn(row.s) : null", "string", `"abc"`},
		{"false ? dyn(row.s) : null", "string", "null"},
		{"row.j.n", "int64", "5"},
		{"row.j.n", "double", "5"},
		{"row.j.n", "uint64", "5"},
		{"row.j.big", "uint64", "18446744073709551615"},
		{"row.j.o.k", "string", `"v"`},
		{"row.j.o", "json", `{"k":"v"}`},
		{"row.j.map(k, k)", "json", `["a","big","n","o","z"]`},
		{`{"b": 1, "a": 2, "d": 3, "c": 4}.map(k, k)`, "json", `["a","b","c","d"]`},
		{"row.j.a", "json", `[1,2.5,"x",null,true]`},
		{"row.j", "json", document.Str},
		{"row.s", "json", `"abc"`},
		{"row.j.a[0] + 1", "int64", "2"},
		{"timestamp", "timestamp", "2023-11-14 22:13:20.000001 +0000 UTC"},
		{"row.at + duration('1s')", "timestamp", "2020-09-13 12:26:41.123456 +0000 UTC"},
		{"string(row.at)", "string", `"2020-09-13T12:26:40.123456Z"`},
		{"stream", "string", `"in"`},
		{"has(row.n)", "boolean", "false"},
		{"dyn(row).s", "string", `"abc"`},
		{"row.s.matches('^a.c$')", "boolean", "true"},
		{"bytes(row.s)", "string", `"abc"`},
		{`row.s in ["x", "abc"]`, "boolean", "true"},
	} {
		v, err := evaluateText(t, c.text, c.target, schema, row...)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var out emitted
		_ = out.Emit(0, message.Row{v})
		if got := strings.TrimPrefix(out.take(), "0: "); got != c.want {
			t.Errorf("%s as %s = %s, want %s", c.text, c.target, got, c.want)
		}
	}
}

func TestFailuresNameTheExpressionAndTheCause(t *testing.T) {
	t.Parallel()
	row := []message.Value{message.Int64Value(9_223_372_036_854_775_807), {}, {Kind: message.JSON, Str: `{"a":1.5,"b":{}}`}, {Kind: message.JSON, Str: `{"a":1,"a":2}`}}
	const schema = "big int64!, none int64, j json, broken json"
	for _, c := range []struct{ text, target, want string }{
		{"row.big + 1", "int64", "integer overflow"},
		{"row.big / 0", "int64", "division by zero"},
		{"row.none + 1", "int64", "null"},
		{"row.none", "int64!", "the result is null, but column out is required"},
		{"row.j.a", "int64", "1.5, but column out is int64"},
		{"row.j.b", "int64", "map, but column out is int64"},
		{"row.j.missing", "int64", "no such key"},
		{"row.broken.a", "int64", `member "a" is repeated`},
		{"int('x')", "int64", "x"},
		{"double('NaN')", "json", "no JSON form"},
	} {
		v, err := evaluateText(t, c.text, c.target, schema, row...)
		if err == nil {
			t.Errorf("%s = %+v, want an error", c.text, v)
			continue
		}
		if !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q, want it to contain %q", c.text, err, c.want)
		}
	}
}

func TestMistakesAreFoundBeforeTheFirstMessage(t *testing.T) {
	t.Parallel()
	scope := Scope{Stream: "in", Row: columns(t, "amount int64!, note string, j json")}
	for _, c := range []struct{ text, target, want string }{
		{"row.amuont", "int64", `stream in has no column amuont; did you mean "amount"?`},
		{"has(row.nota)", "boolean", `did you mean "note"?`},
		{"row.note", "int64", "is of type string, but column out is int64; int(..) converts"},
		{"row.amount + 1.5", "double", "no matching overload"},
		{"amount", "int64", "columns are written row.NAME"},
		{"row.amount >", "boolean", "Syntax error"},
		{"", "string", "is empty"},
		{"null", "string!", "is null, but column out is required"},
		{"row.amount > 0 ? 'x' : null", "string", "write dyn(VALUE)"},
		{"key.amount", "int64", "undeclared reference"},
		{"item", "int64", "undeclared reference"},
		{"now()", "timestamp", "undeclared reference"},
		{"[1]", "string", "list(int)"},
		{"duration('1s')", "json", "Duration"},
		{"processor.Row{}.amount", "int64", ""},
	} {
		to := columns(t, "out "+c.target).Columns[0]
		to.Name = "column out"
		x, problems := CompileExpression(c.text, scope, to)
		if x != nil {
			if c.want != "" {
				t.Errorf("%s was accepted", c.text)
			}
			continue
		}
		if len(problems) == 0 || !strings.Contains(problems[len(problems)-1].Message, c.want) {
			t.Errorf("%s: %v, want %q", c.text, problems, c.want)
		}
	}
}

func TestUnguardedNullableColumnsAreWarnedOf(t *testing.T) {
	t.Parallel()
	scope := Scope{Stream: "in", Row: columns(t, "n int64, s string, b boolean, r int64!, j json")}
	for text, want := range map[string]string{
		"row.n + 1":                             "row.n",
		"row.r + 1":                             "",
		"row.n":                                 "",
		"row.n == null":                         "",
		"row.n == row.r":                        "",
		"row.n != null && row.n > 1":            "",
		"row.n > 1 && row.n != null":            "", // the false term absorbs the other's error
		"row.n == null || row.n > 1":            "",
		"row.n != null || row.n > 1":            "row.n",
		"!(row.n == null) && row.n > 1":         "",
		"has(row.s) ? row.s.size() : 0":         "",
		"has(row.s) ? 0 : row.s.size()":         "row.s",
		"row.s == 'x' ? row.s.size() : 0":       "",
		"row.s != 'x' ? row.s.size() : 0":       "row.s",
		"row.n != null && row.s.size() > row.n": "row.s",
		"row.b ? 1 : 2":                         "row.b",
		"row.b && true":                         "row.b",
		"row.s in ['a']":                        "",
		"row.j.a == 1":                          "row.j",
		"[1, 2].exists(x, x == row.n + x)":      "row.n",
		"row.n != null && row.s != null ? row.s.substring(row.n) == '' : false": "",
	} {
		_, problems := CompileExpression(text, scope, message.Column{Name: "out", Kind: message.JSON})
		var got []string
		for _, p := range problems {
			if !p.Warning {
				t.Fatalf("%s: %s", text, p.Message)
			}
			name, _, _ := strings.Cut(p.Message, " ")
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s warns of %v, want %q", text, got, want)
		}
	}
}

func TestCommonExpressionsRunAsClosures(t *testing.T) {
	t.Parallel()
	scope := Scope{Stream: "in", Row: columns(t, "id string!, amount int64!, text string, j json")}
	for text, closure := range map[string]bool{
		`row.amount > 0 ? dyn(row.id + ":" + string(row.amount)) : null`: true,
		"row.j":                             true,
		`row.text.lowerAscii()`:             true,
		`row.id in ["a", "b"]`:              true,
		"row.j.a":                           false,
		`row.id.matches("a+")`:              false,
		`row.id.split(",").size()`:          false,
		`[1, 2].exists(x, x == row.amount)`: false,
	} {
		x, problems := CompileExpression(text, scope, message.Column{Name: "out", Kind: message.JSON})
		if x == nil {
			t.Fatalf("%s: %v", text, problems)
		}
		if (x.fast != nil) != closure {
			t.Errorf("%s runs as a closure: %v", text, x.fast != nil)
		}
	}
}

func TestSplitGivesTheSamePartsWithoutAList(t *testing.T) {
	t.Parallel()
	base, err := newEnvironment(Scope{Stream: "in", Row: columns(t, "s string!, sep string!")})
	if err != nil {
		t.Fatal(err)
	}
	cut, _, _ := base.compileList("row.s.split(row.sep)")
	listed, element, _ := base.compileList("[row.s].map(x, x.split(row.sep))[0]")
	if cut == nil || listed == nil || cut.program != nil || listed.program == nil || element.Kind() != cel.StringType.Kind() {
		t.Fatal("the two lists are not what the test compares")
	}
	for _, s := range append(someStrings, ",", ",a,", "a,,b") {
		for _, sep := range []string{",", "", "aa", "x", "é"} {
			if !utf8.ValidString(s) {
				continue // an error: see TestBytesThatAreNoTextAreNeverReplaced
			}
			f := Frame{}
			f.Begin(&Message{Row: message.Row{message.StringValue(s), message.StringValue(sep)}}, &base.Scope)
			if a, b := parts(t, &f, cut), parts(t, &f, listed); a != b {
				t.Errorf("split %q by %q: %s, want %s", s, sep, a, b)
			}
		}
	}
}

// Bytes that are no text pass as they are through a column alone; anything else that reads them is an error, since the library would
// replace them and make different strings equal.
func TestBytesThatAreNoTextAreNeverReplaced(t *testing.T) {
	t.Parallel()
	scope := Scope{Stream: "in", Row: columns(t, "s string!")}
	for text, fine := range map[string]bool{`row.s`: true, `row.s.lowerAscii()`: false, `row.s + "x"`: false, `row.s.matches("a") ? "a" : "b"`: false} {
		x, problems := CompileExpression(text, scope, message.Column{Name: "out", Kind: message.String})
		if x == nil {
			t.Fatalf("%s: %v", text, problems)
		}
		f := Frame{}
		f.Begin(&Message{Row: message.Row{message.StringValue("\xff")}}, &scope)
		v, err := x.Evaluate(&f)
		if fine && (err != nil || v.Str != "\xff") || !fine && !errors.Is(err, errNotText) && (err == nil || !strings.Contains(err.Error(), "UTF-8")) {
			t.Errorf("%s: %q, %v", text, v.Str, err)
		}
	}
}

func parts(t *testing.T, f *Frame, l *list) string {
	t.Helper()
	it, err := l.start(f)
	if err != nil {
		t.Fatal(err)
	}
	var out emitted
	for {
		more, err := it.next(f)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return out.take()
		}
		_ = out.Emit(0, message.Row{f.item})
	}
}
