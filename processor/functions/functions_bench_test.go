package functions

import (
	"testing"

	"github.com/kafka-processor/processor/processor/message"
)

type discard struct{ rows int }

func (d *discard) Emit(int, message.Row) error { d.rows++; return nil }

func rekey(tb testing.TB) (Function, *Message) {
	c := config(tb, `
function: map
parameters: {outputs: [{stream: by_user, columns: {user: row.user.reverse(), amount: row.amount, ts: row.ts, pad: row.pad}}]}
`)
	c.Inputs = []Stream{{"events", columns(tb, "user string!, amount int64, ts int64, pad string")}}
	c.Outputs = []Stream{{"by_user", columns(tb, "user string, amount int64, ts int64, pad string")}}
	return mustBuild(tb, c), &Message{Row: message.Row{message.StringValue("user-0001234567"), message.Int64Value(5), message.Int64Value(1_700_000_000_000), message.StringValue("padding padding")}}
}

func words(tb testing.TB) (Function, *Message) {
	return wordSplit(tb), &Message{Row: message.Row{message.StringValue("The quick brown fox jumps over the lazy dog again")}}
}

func hotKey(tb testing.TB) (Function, *Message) {
	return buildLedger(tb), posting("posting-000123", "account-77", 3)
}

// run calls f for one message; it must not allocate once the scratch memory has its size.
func run(tb testing.TB, f Function, m *Message) func() {
	st, out := &oneKey{}, &discard{}
	if s := f.States(); s != nil {
		st.codec = s[0].Codec
	}
	return func() {
		if err := f.OnMessage(m, st, out); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestMessagesAreProcessedWithoutAllocation(t *testing.T) {
	for name, make := range map[string]func(testing.TB) (Function, *Message){"rekey": rekey, "words": words, "aggregate": hotKey} {
		f, m := make(t)
		if n := testing.AllocsPerRun(100, run(t, f, m)); n > 0 {
			t.Errorf("%s allocates %v times a message", name, n)
		}
	}
}

func benchmark(b *testing.B, make func(testing.TB) (Function, *Message)) {
	f, m := make(b)
	call := run(b, f, m)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

func BenchmarkMapReverseAndThreeColumns(b *testing.B) { benchmark(b, rekey) }
func BenchmarkMapSplitTenWords(b *testing.B)          { benchmark(b, words) }
func BenchmarkAggregateCountSumLast(b *testing.B)     { benchmark(b, hotKey) }
