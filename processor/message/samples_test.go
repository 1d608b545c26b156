package message

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var sampleSchema = MustSchema(
	Column{Name: "s", Kind: String, Required: true}, Column{Name: "i", Kind: Int64}, Column{Name: "u", Kind: Uint64},
	Column{Name: "d", Kind: Double}, Column{Name: "b", Kind: Boolean}, Column{Name: "t", Kind: Timestamp},
	Column{Name: "j", Kind: JSON}, Column{Name: "s2", Kind: String}, Column{Name: "i2", Kind: Int64})

func sampleRows() map[string]Row {
	null := NullValue()
	return map[string]Row{
		"full": {StringValue("word"), Int64Value(-300), Uint64Value(math.MaxUint64), DoubleValue(1.5), BooleanValue(true),
			TimestampValue(1_700_000_000_123_456), JSONValue(`{"a":[1,2]}`), StringValue(""), Int64Value(math.MaxInt64)},
		"nulls": {StringValue("\xff\x00"), null, null, null, null, null, null, null, null},
		"small": {StringValue(""), Int64Value(0), Uint64Value(127), DoubleValue(math.Copysign(0, -1)), BooleanValue(false),
			TimestampValue(-1), JSONValue("[]"), null, Int64Value(math.MinInt64)},
	}
}

func sampleIDs() map[string]ID {
	return map[string]ID{
		"zero":           {},
		"first_child":    {Fingerprint: 0x0123456789abcdef, Partition: 7, Offset: 1000},
		"largest_inline": {Fingerprint: 1, Partition: 1, Offset: 1, Ordinal: 0xef},
		"one_byte":       {Fingerprint: 1, Partition: 1, Offset: 1, Ordinal: 0xf0},
		"three_bytes":    {Fingerprint: 1, Partition: 1, Offset: 1, Ordinal: 0x10000},
		"largest":        {Fingerprint: math.MaxUint64, Partition: math.MaxUint32, Offset: math.MaxUint64, Ordinal: math.MaxUint64},
	}
}

func sampleEnvelopes() map[string]Envelope {
	id := ID{Fingerprint: 0x0123456789abcdef, Partition: 7, Offset: 1000, Ordinal: 2}
	times := Envelope{ID: id, EventTime: 1_700_000_000_000_000, SystemTime: 1_700_000_000_250_000, Schema: 0xfedcba9876543210}
	start, before, sibling, odd := times, times, times, times
	start.Swift, start.Start = true, true
	before.Swift, before.PrevOffset, before.PrevOrdinal = true, 997, 5
	sibling.Swift, sibling.PrevOffset, sibling.PrevOrdinal = true, 1000, 1
	odd.Swift, odd.PrevOffset, odd.PrevOrdinal, odd.EventTime, odd.SystemTime = true, 1001, 9, math.MinInt64, math.MaxInt64
	return map[string]Envelope{"transform": times, "start": start, "before": before, "sibling": sibling, "odd": odd}
}

// frozen reads testdata/NAME.txt: lines of a sample's name and its bytes in hexadecimal. What is written there is what earlier
// versions of the program have stored; a line is added for a new format version, none is ever changed.
func frozen(t testing.TB, name string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		sample, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if samples[sample], err = hex.DecodeString(digits); err != nil {
			t.Fatalf("%s of %s: %v", sample, name, err)
		}
	}
	return samples
}

func checkFrozen(t *testing.T, stored map[string][]byte, sample string, got []byte) {
	t.Helper()
	if want, ok := stored[sample]; !ok || !bytes.Equal(got, want) {
		t.Errorf("%s %x\nis written otherwise than it was: %x", sample, got, want)
	}
}

func sameRow(a, b Row) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func newRandom(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomNumber has a random length in bits, so that small numbers and the borders of encodings are frequent.
func randomNumber(r *rand.Rand) uint64 {
	n := r.Uint64() >> r.IntN(64)
	switch r.IntN(4) {
	case 0:
		return -n
	case 1:
		return 1<<r.IntN(64) + uint64(r.IntN(3)) - 1
	}
	return n
}

const randomLetters = `aZ 0"\/{}[]:,` + "\x00\x01\n\t\x7fäß€𝄞\u2028\ufffd"

func randomString(r *rand.Rand) string {
	letters := []rune(randomLetters)
	var b strings.Builder
	for range r.IntN(30) {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	return b.String()
}

// randomRow is a row of the sample schema whose values all have a form in JSON.
func randomRow(r *rand.Rand) Row {
	f := math.Float64frombits(randomNumber(r))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = r.NormFloat64()
	}
	quoted, _ := appendString(nil, randomString(r))
	row := Row{
		StringValue(randomString(r)), Int64Value(int64(randomNumber(r))), Uint64Value(randomNumber(r)), DoubleValue(f),
		BooleanValue(r.IntN(2) == 0), TimestampValue(minTime + r.Int64N(maxTime-minTime+1)),
		JSONValue(`{"x":[1,-2.5e3,` + string(quoted) + `,null,{}]}`), StringValue(randomString(r)), Int64Value(int64(randomNumber(r))),
	}
	for i := range row {
		if !sampleSchema.Columns[i].Required && r.IntN(4) == 0 {
			row[i] = NullValue()
		}
	}
	return row
}
