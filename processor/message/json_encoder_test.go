package message

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestJSONIsWrittenInOneForm(t *testing.T) {
	t.Parallel()
	schema := MustSchema(Column{Name: "a\"\n", Kind: String}, Column{Name: "i", Kind: Int64}, Column{Name: "u", Kind: Uint64}, Column{Name: "d", Kind: Double},
		Column{Name: "b", Kind: Boolean}, Column{Name: "t", Kind: Timestamp}, Column{Name: "j", Kind: JSON})
	null := NullValue()
	for want, row := range map[string]Row{
		`{"a\"\n":null,"i":null,"u":null,"d":null,"b":null,"t":null,"j":null}`: {null, null, null, null, null, null, null},
		`{"a\"\n":"\u0000\u001f\b\f\n\r\t\"\\/<&` + "\x7fä\u2028𝄞" + `","i":-9223372036854775808,"u":18446744073709551615,"d":0.1,"b":true,"t":"2023-11-14T22:13:20.12Z","j":{"a b":[1,2]}}`: {
			StringValue("\x00\x1f\b\f\n\r\t\"\\/<&\x7fä\u2028𝄞"), Int64Value(math.MinInt64), Uint64Value(math.MaxUint64), DoubleValue(0.1),
			BooleanValue(true), TimestampValue(1_700_000_000_120_000), JSONValue(" { \"a b\" : [1, 2 ]\n}")},
		`{"a\"\n":"","i":0,"u":0,"d":1e-7,"b":false,"t":"1970-01-01T00:00:00Z","j":null}`: {
			StringValue(""), Int64Value(0), Uint64Value(0), DoubleValue(1e-7), BooleanValue(false), TimestampValue(0), JSONValue("null")},
	} {
		got, err := NewJSONEncoder(schema).Append([]byte("head"), row)
		if err != nil || string(got) != "head"+want {
			t.Errorf("written as\n%s, %v, want\n%s", got, err, want)
		}
	}
	if got, err := NewJSONEncoder(MustSchema()).Append(nil, nil); err != nil || string(got) != "{}" {
		t.Errorf("no columns are written as %s, %v", got, err)
	}
}

func TestValuesWithoutAFormInJSONAreRefusedByName(t *testing.T) {
	t.Parallel()
	e := NewJSONEncoder(sampleSchema)
	for _, c := range []struct {
		column int
		value  Value
		cause  error
	}{
		{0, NullValue(), errNullRequired}, {0, StringValue("a\xff"), errJSONUTF8}, {0, StringValue("\xff\nand some more"), errJSONUTF8}, {0, StringValue("\xed\xa0\x80 and some more"), errJSONUTF8},
		{3, DoubleValue(math.NaN()), errFloat}, {3, DoubleValue(math.Inf(1)), errFloat}, {3, DoubleValue(math.Inf(-1)), errFloat},
		{5, TimestampValue(maxTime + 1), errTimeRange}, {6, JSONValue(""), errJSONEnd}, {6, JSONValue("{}{}"), errJSONTrailing},
		{6, JSONValue(`{"a":}`), errJSONSyntax}, {6, JSONValue("\"\xff\""), errJSONUTF8}, {6, JSONValue(`"\ud834"`), errJSONSurrogate},
		{1, StringValue("1"), nil}, {1, Uint64Value(1), nil},
	} {
		row := append(Row(nil), sampleRows()["full"]...)
		row[0] = StringValue("ok")
		row[c.column] = c.value
		got, err := e.Append([]byte("head"), row)
		name := sampleSchema.Columns[c.column].Name
		if err == nil || c.cause != nil && !errors.Is(err, c.cause) || !strings.Contains(err.Error(), "column "+name+":") {
			t.Errorf("%+v in %s: error %v", c.value, name, err)
		}
		if string(got) != "head" {
			t.Errorf("%+v in %s: something was appended: %s", c.value, name, got)
		}
	}
	if _, err := e.Append(nil, sampleRows()["full"][:3]); err == nil {
		t.Error("a short row was written")
	}
}

func TestDoublesAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	borders := []float64{0, 1e21, 1e-6, 1e20, 1e-7, 1e-10, 1e100, math.Nextafter(1e21, 0), math.Nextafter(1e-6, 0), math.MaxFloat64, 5e-324}
	for n := range 20000 {
		f := math.Float64frombits(r.Uint64())
		switch r.IntN(3) {
		case 0:
			f = r.NormFloat64() * math.Pow10(r.IntN(60)-30)
		case 1:
			f = float64(r.IntN(100000)) / math.Pow10(r.IntN(10))
		}
		if n < len(borders) {
			f = borders[n]
		}
		want, libraryErr := json.Marshal(f)
		got, err := appendDouble(nil, f)
		if (err == nil) != (libraryErr == nil) || string(got) != string(want) && err == nil {
			t.Fatalf("%v is written %s, %v; want %s, %v", f, got, err, want, libraryErr)
		}
		if err != nil {
			continue
		}
		if back, err := oneValue(Double, string(got)); err != nil || !Equal(back, DoubleValue(f)) {
			t.Fatalf("%s reads as %v, %v", got, back.Double(), err)
		}
	}
}

func TestRowsComeBackFromJSONAsTheyWere(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	e, d := NewJSONEncoder(sampleSchema), NewJSONDecoder(sampleSchema)
	for range 3000 {
		row := randomRow(r)
		text, err := e.Append(nil, row)
		if err != nil || !json.Valid(text) {
			t.Fatalf("%v is written %s, %v", row, text, err)
		}
		if back, err := d.Decode(nil, text); err != nil || !sameRow(back, row) {
			t.Fatalf("%s\nreads as %v, %v\nwant %v", text, back, err, row)
		}
	}
}

func TestJSONEncodingDoesNotAllocate(t *testing.T) {
	e, row := NewJSONEncoder(sampleSchema), append(Row(nil), sampleRows()["full"]...)
	row[0] = StringValue("grüße\n")
	dst := make([]byte, 0, 1000)
	var err error
	if n := testing.AllocsPerRun(100, func() { dst, err = e.Append(dst[:0], row) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}
