package functions

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/kafka-processor/processor/processor/message"
)

const ledger = `
function: aggregate
parameters:
  output: balances
  fields: {n: {count: {}}, balance: {sum: row.amount}, last_id: {last: row.id}}
  emit: update
`

func buildLedger(t testing.TB) Function {
	c := config(t, ledger)
	c.GroupBy = columns(t, "account string")
	c.Inputs = []Stream{{"postings", columns(t, "id string, account string, amount int64")}}
	c.Outputs = []Stream{{"balances", columns(t, "account string, n int64, balance int64, last_id string")}}
	return mustBuild(t, c)
}

func posting(id, account string, amount int64) *Message {
	return &Message{Row: message.Row{message.StringValue(id), message.StringValue(account), message.Int64Value(amount)}, KeyRow: message.Row{message.StringValue(account)}}
}

func TestAggregateEmitsTheGroupAndItsFieldsForEachMessage(t *testing.T) {
	t.Parallel()
	f := buildLedger(t)
	st := &oneKey{codec: f.States()[0].Codec}
	var out emitted
	for _, m := range []*Message{posting("p1", "a", 5), posting("p2", "a", -7)} {
		if err := f.OnMessage(m, st, &out); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.take(); got != "0: \"a\" 1 5 \"p1\"\n0: \"a\" 2 -2 \"p2\"" {
		t.Errorf("got %s", got)
	}
}

func TestEveryOperationSkipsNulls(t *testing.T) {
	t.Parallel()
	c := config(t, `
function: aggregate
parameters:
  output: out
  fields:
    rows: {count: {}}
    some: {count: row.n}
    texts: {count: row.s}
    docs: {count: row.j}
    total: {sum: row.n}
    utotal: {sum: row.u}
    dtotal: {sum: row.d}
    low: {min: row.s}
    high: {max: row.n}
    late: {max: timestamp}
    mean: {avg: row.n}
    head: {first: row.s}
    tail: {last: row.j}
    yes: {max: row.b}
`)
	c.GroupBy = columns(t, "k int64")
	c.Inputs = []Stream{{"in", columns(t, "n int64, s string, u uint64, d double, j json, b boolean")}}
	c.Outputs = []Stream{{"out", columns(t, "none double, k int64, rows int64, some int64, texts int64, docs int64, total int64, utotal uint64, dtotal double, "+
		"low string, high int64, late timestamp, mean double, head string, tail json, yes boolean")}}
	f, faults := Build(c)
	if f == nil {
		t.Fatal(shownFaults(faults))
	}
	st := &oneKey{codec: f.States()[0].Codec}
	json := func(s string) message.Value { return message.JSONValue(s) }
	null := message.Row{{}, {}, {}, {}, {}, {}}
	var out emitted
	for i, row := range []message.Row{
		null,
		{message.Int64Value(-3), message.StringValue("m"), message.Uint64Value(2), message.DoubleValue(0.5), json("[1]"), message.BooleanValue(false)},
		null,
		{message.Int64Value(4), message.StringValue("b"), message.Uint64Value(5), message.DoubleValue(1), json("{}"), message.BooleanValue(true)},
		null,
	} {
		m := &Message{Row: row, KeyRow: message.Row{message.Int64Value(1)}, EventTime: int64(10 - i)}
		if err := f.OnMessage(m, st, &out); err != nil {
			t.Fatal(err)
		}
	}
	const at = "1970-01-01 00:00:00.00001 +0000 UTC"
	want := "0: null 1 1 0 0 0 null null null null null " + at + " null null null null\n" +
		"0: null 1 2 1 1 1 -3 2 0.5 \"m\" -3 " + at + " -3 \"m\" [1] false\n" +
		"0: null 1 3 1 1 1 -3 2 0.5 \"m\" -3 " + at + " -3 \"m\" [1] false\n" +
		"0: null 1 4 2 2 2 1 7 1.5 \"b\" 4 " + at + " 0.5 \"m\" {} true\n" +
		"0: null 1 5 2 2 2 1 7 1.5 \"b\" 4 " + at + " 0.5 \"m\" {} true"
	if got := out.take(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFieldsWithoutValuesAreNull(t *testing.T) {
	t.Parallel()
	f := buildLedger(t)
	st := &oneKey{codec: f.States()[0].Codec}
	var out emitted
	m := &Message{Row: message.Row{{}, message.StringValue("a"), {}}, KeyRow: message.Row{message.StringValue("a")}}
	if err := f.OnMessage(m, st, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.take(); got != `0: "a" 1 null null` {
		t.Errorf("got %s", got)
	}
}

func TestAFailingMessageLeavesTheStateAsItWas(t *testing.T) {
	t.Parallel()
	f := buildLedger(t)
	st := &oneKey{codec: f.States()[0].Codec}
	var out emitted
	if err := f.OnMessage(posting("p1", "a", math.MaxInt64), st, &out); err != nil {
		t.Fatal(err)
	}
	before := st.encoded(t)
	err := f.OnMessage(posting("p2", "a", 1), st, &out)
	if err == nil || !strings.Contains(err.Error(), "field balance") || !errors.Is(err, errOverflow) {
		t.Errorf("error %v, want an overflow of field balance", err)
	}
	if st.encoded(t) != before || len(out.rows) != 1 {
		t.Errorf("the failing message changed the state or gave an output: %q", out.rows)
	}
	st.refused = errTooLarge
	if err := f.OnMessage(posting("p3", "a", -1), st, &out); !errors.Is(err, errTooLarge) {
		t.Errorf("error %v, want that of the state", err)
	}
	st.refused, out.refused = nil, errTooLarge
	if err := f.OnMessage(posting("p3", "a", -1), st, &out); !errors.Is(err, errTooLarge) {
		t.Errorf("error %v, want that of Emit", err)
	}
}

// An expression that fails must not even ask for the state, which would make a new key.
func TestExpressionsComeBeforeTheState(t *testing.T) {
	t.Parallel()
	c := config(t, strings.Replace(ledger, "row.amount", "row.amount / 0", 1))
	c.GroupBy = columns(t, "account string")
	c.Inputs = []Stream{{"postings", columns(t, "id string, account string, amount int64!")}}
	c.Outputs = []Stream{{"balances", columns(t, "account string, n int64, balance int64, last_id string")}}
	f := mustBuild(t, c)
	st := &oneKey{codec: f.States()[0].Codec}
	if err := f.OnMessage(posting("p", "a", 1), st, &emitted{}); !errors.Is(err, errDivideByZero) || st.modified != 0 {
		t.Errorf("error %v, state asked for %d times, want a division by zero and none", err, st.modified)
	}
}

func TestSumsOfDoublesStayFinite(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		a := accumulator{value: message.DoubleValue(math.MaxFloat64)}
		if _, _, err := a.next(opSum, message.DoubleValue(v)); !errors.Is(err, errNotFinite) {
			t.Errorf("sum with %v: %v, want an error", v, err)
		}
	}
	if _, _, err := (&accumulator{}).next(opMin, message.DoubleValue(math.NaN())); !errors.Is(err, errNaNOrder) {
		t.Errorf("min of NaN: %v, want an error", err)
	}
}

// The strings of a message may point into a fetched batch, which a state that lives for days must not keep.
func TestTheStateHasItsOwnStrings(t *testing.T) {
	t.Parallel()
	f := buildLedger(t)
	st := &oneKey{codec: f.States()[0].Codec}
	batch := []byte("p1")
	m := posting("", "a", 1)
	m.Row[0] = message.StringValue(unsafe.String(&batch[0], len(batch)))
	if err := f.OnMessage(m, st, &emitted{}); err != nil {
		t.Fatal(err)
	}
	before := st.encoded(t)
	copy(batch, "xx")
	if st.encoded(t) != before {
		t.Error("the state changed with the batch")
	}
}

func TestEveryFaultOfAnAggregateIsReportedAtItsPlace(t *testing.T) {
	t.Parallel()
	c := config(t, `function: aggregate
parameters:
  output: out
  emit: close
  window: {type: tumbling}
  allowed_lateness: 1s
  late_stream: late
  period: 1s
  fields:
    n: {cuont: {}}
    users: {count_distinct: row.id}
    totl: {sum: row.amount}
    total: {sum: row.id}
    k: {count: {}}
    text: {count: {}}
    doc: {min: row.id}
    both: {sum: row.amount, min: row.amount}
    mean: {avg: row.amuont}
`)
	c.GroupBy = columns(t, "k string, gone string, other int64")
	c.Inputs = []Stream{{"in", columns(t, "id string, amount int64")}}
	c.Outputs = []Stream{{"out", columns(t, "k string, other string, n int64, users int64, total int64, text string, doc json, both int64, mean double, must int64!")}}
	f, faults := Build(c)
	want := `p.yaml:3:11: stream out has no column gone, which is in group_by_schema
p.yaml:3:11: column other of stream out is string, but int64 in group_by_schema
p.yaml:4:9: emit: close of aggregate is not available in this version
p.yaml:5:11: window of aggregate is not available in this version
p.yaml:6:21: allowed_lateness of aggregate is not available in this version
p.yaml:7:16: late_stream of aggregate is not available in this version
p.yaml:8:11: period of aggregate is not available in this version
p.yaml:10:5: column must of stream out is required, but is neither a group column nor a field
p.yaml:10:9: unknown operation "cuont"; did you mean "count"?; known are count, sum, min, max, avg, first, last
p.yaml:11:13: count_distinct of aggregate is not available in this version
p.yaml:12:5: stream out has no column totl; did you mean "total"?
p.yaml:13:18: expression "row.id": is of type string, but sum in column total is int64; int(..) converts
p.yaml:14:5: field k has the name of a group column
p.yaml:15:5: text of stream out is string, but count gives int64
p.yaml:16:5: doc of stream out is json, but min has no order for it
p.yaml:17:11: field both needs one operation, such as {count: {}} or {sum: row.amount}
p.yaml:18:17: expression "row.amuont": stream in has no column amuont; did you mean "amount"?`
	if got := shownFaults(faults); f != nil || got != want {
		t.Errorf("function %v, faults\n%s\nwant\n%s", f, got, want)
	}
	c.GroupBy = nil
	if _, faults = Build(c); !strings.Contains(shownFaults(faults), "aggregate needs group_by_schema") {
		t.Errorf("without group_by_schema: %s", shownFaults(faults))
	}
}

func TestVersionsAndStatesAreFixed(t *testing.T) {
	t.Parallel()
	m, a := wordSplit(t), buildLedger(t)
	if m.Version() != "map/1" || m.States() != nil {
		t.Errorf("map: %s %v", m.Version(), m.States())
	}
	if a.Version() != "aggregate/1" || len(a.States()) != 1 || a.States()[0].Name != "aggregate" {
		t.Errorf("aggregate: %s %v", a.Version(), a.States())
	}
}
