package functions

import (
	"errors"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/message"
)

func wordSplit(t testing.TB) Function {
	c := config(t, `
function: map
parameters:
  outputs:
    - {stream: words, for_each: 'row.text.lowerAscii().split(" ")', where: 'item != ""', columns: {word: item}}
`)
	c.Inputs = []Stream{{"lines", columns(t, "text string")}}
	c.Outputs = []Stream{{"words", columns(t, "word string!")}}
	return mustBuild(t, c)
}

func TestForEachEmitsTheElementsThatWhereKeepsInOrder(t *testing.T) {
	t.Parallel()
	f := wordSplit(t)
	var out emitted
	for text, want := range map[string]string{
		"The quick  BROWN fox": "0: \"the\"\n0: \"quick\"\n0: \"brown\"\n0: \"fox\"",
		"":                     "",
		" ":                    "",
		"one":                  `0: "one"`,
	} {
		if err := f.OnMessage(&Message{Row: message.Row{message.StringValue(text)}}, nil, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.take(); got != want {
			t.Errorf("%q gives %s, want %s", text, got, want)
		}
	}
	err := f.OnMessage(&Message{Row: message.Row{{}}}, nil, &out)
	if err == nil || !strings.Contains(err.Error(), "for_each of stream words") {
		t.Errorf("a null text gives %v, want an error that names for_each", err)
	}
}

func TestOutputsComeInTheirOrderForEveryInput(t *testing.T) {
	t.Parallel()
	c := config(t, `
function: map
parameters:
  outputs:
    - {stream: b, columns: {n: row.n * 2, s: stream}}
    - {stream: a, where: row.n > 1, columns: {at: timestamp, k: key.k}}
    - {stream: b, for_each: '[row.n, row.n + 1]', columns: {n: item, s: '"x" + string(item)'}}
    - {stream: b, for_each: 'row.j.list', columns: {n: item.v, s: null}}
`)
	c.GroupBy = columns(t, "k string")
	c.Inputs = []Stream{{"first", columns(t, "n int64!, j json")}, {"second", columns(t, "j json, n int64!")}}
	c.Outputs = []Stream{{"a", columns(t, "at timestamp, k string, other int64")}, {"b", columns(t, "n int64, s string")}}
	f := mustBuild(t, c)
	document := message.JSONValue(`{"list":[{"v":7},{"v":8.0}]}`)
	var out emitted
	for _, m := range []Message{
		{Row: message.Row{message.Int64Value(5), document}},
		{Row: message.Row{document, message.Int64Value(1)}, Stream: 1},
	} {
		m.KeyRow, m.EventTime = message.Row{message.StringValue("me")}, 1_000_000
		if err := f.OnMessage(&m, nil, &out); err != nil {
			t.Fatal(err)
		}
	}
	want := `1: 10 "first"
0: 1970-01-01 00:00:01 +0000 UTC "me" null
1: 5 "x5"
1: 6 "x6"
1: 7 null
1: 8 null
1: 2 "second"
1: 1 "x1"
1: 2 "x2"
1: 7 null
1: 8 null`
	if got := out.take(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTransfersExampleGivesNullForNothingToSend(t *testing.T) {
	t.Parallel()
	c := config(t, `
function: map
parameters:
  outputs:
    - {stream: requests, columns: {payload: 'row.amount > 0 ? dyn(row.id + ":" + string(row.amount)) : null'}}
`)
	c.Inputs = []Stream{{"transfers", columns(t, "id string!, account string!, amount int64!")}}
	c.Outputs = []Stream{{"requests", columns(t, "payload string")}}
	f := mustBuild(t, c)
	var out emitted
	for _, amount := range []int64{12, 0} {
		row := message.Row{message.StringValue("t1"), message.StringValue("a"), message.Int64Value(amount)}
		if err := f.OnMessage(&Message{Row: row}, nil, &out); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.take(); got != "0: \"t1:12\"\n0: null" {
		t.Errorf("got %s", got)
	}
}

func TestMapErrorsComeFromTheMessageOrTheOutput(t *testing.T) {
	t.Parallel()
	c := config(t, `
function: map
parameters: {outputs: [{stream: b, where: row.n > 1, columns: {n: row.n, m: row.m}}]}
`)
	c.Inputs = []Stream{{"a", columns(t, "n int64, m int64")}}
	c.Outputs = []Stream{{"b", columns(t, "n int64, m int64!")}}
	f := mustBuild(t, c)
	var out emitted
	for _, r := range []struct {
		row  message.Row
		want string
	}{
		{message.Row{{}, message.Int64Value(1)}, "where of stream b: expression \"row.n > 1\""},
		{message.Row{message.Int64Value(2), {}}, "column m is required"},
	} {
		err := f.OnMessage(&Message{Row: r.row}, nil, &out)
		if err == nil || !strings.Contains(err.Error(), r.want) || out.rows != nil {
			t.Errorf("%v: error %v, emitted %v; want %q", r.row, err, out.rows, r.want)
		}
	}
	out.refused = errTooLarge
	if err := f.OnMessage(&Message{Row: message.Row{message.Int64Value(2), message.Int64Value(2)}}, nil, &out); !errors.Is(err, errTooLarge) {
		t.Errorf("error %v, want that of Emit", err)
	}
}

// Strings that one output makes must not change those of the elements that are still to come.
func TestMadeStringsLiveUntilTheirRowIsEmitted(t *testing.T) {
	t.Parallel()
	c := config(t, `
function: map
parameters:
  outputs:
    - {stream: b, for_each: 'row.s.upperAscii().split(",")', columns: {x: item + "!", y: item.reverse(), z: 'item + "?" + string(size(item))'}}
`)
	c.Inputs = []Stream{{"a", columns(t, "s string!")}}
	c.Outputs = []Stream{{"b", columns(t, "x string, y string, z string")}}
	f := mustBuild(t, c)
	var out emitted
	for range 3 { // the arena grows in the first round and is reused later
		if err := f.OnMessage(&Message{Row: message.Row{message.StringValue("ab,cde,f")}}, nil, &out); err != nil {
			t.Fatal(err)
		}
		want := "0: \"AB!\" \"BA\" \"AB?2\"\n0: \"CDE!\" \"EDC\" \"CDE?3\"\n0: \"F!\" \"F\" \"F?1\""
		if got := out.take(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestEveryFaultOfAMapIsReportedAtItsPlace(t *testing.T) {
	t.Parallel()
	c := config(t, `function: map
parameters:
  outputs:
    - stream: wrods
      columns: {word: row.text}
    - stream: words
      where: row.text
      columns:
        wrod: row.text
        n: row.text
    - stream: words
      for_each: row.n
      colunms: {}
    - {stream: words, columns: {word: [1], n: row.n + 1}}
`)
	c.Inputs = []Stream{{"lines", columns(t, "text string, n int64")}}
	c.Outputs = []Stream{{"words", columns(t, "word string!, n int64")}}
	f, faults := Build(c)
	want := `p.yaml:4:15: stream "wrods" is not one of output_stream_ids (words); did you mean "words"?
p.yaml:6:7: column word of stream words is required, but has no expression
p.yaml:7:14: expression "row.text": is of type string, but where is boolean
p.yaml:9:9: stream words has no column wrod; did you mean "word"?
p.yaml:10:12: expression "row.text": is of type string, but column n is int64; int(..) converts
p.yaml:11:7: column word of stream words is required, but has no expression
p.yaml:12:17: expression "row.n": is of type int64, but for_each needs a list
p.yaml:13:7: unknown field "colunms"; did you mean "columns"?
p.yaml:14:39: column word is a list; write a CEL expression
p.yaml:14:47: warning: expression "row.n + 1": row.n may be null, which is an error here; guard it (row.n != null && .., or a conditional) or make the column required`
	if got := shownFaults(faults); f != nil || got != want {
		t.Errorf("function %v, faults\n%s\nwant\n%s", f, got, want)
	}
}

func TestWhereGuardsTheColumns(t *testing.T) {
	t.Parallel()
	c := config(t, `
function: map
parameters: {outputs: [{stream: b, where: row.n != null, columns: {n: row.n + 1}}]}
`)
	c.Inputs = []Stream{{"a", columns(t, "n int64")}}
	c.Outputs = []Stream{{"b", columns(t, "n int64")}}
	if _, faults := Build(c); len(faults) > 0 {
		t.Errorf("faults %v, want none", faults)
	}
}

func TestAnUnknownFunctionIsReportedWithTheNearestName(t *testing.T) {
	t.Parallel()
	f, faults := Build(config(t, "function: agregate\nparameters: {}"))
	want := `p.yaml:1:11: unknown function "agregate"; did you mean "aggregate"?; known are aggregate, map`
	if got := shownFaults(faults); f != nil || got != want {
		t.Errorf("got %v, %s, want %s", f, got, want)
	}
}
