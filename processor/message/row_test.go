package message

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestRowsOfEarlierVersionsAreRead(t *testing.T) {
	t.Parallel()
	stored := frozen(t, "row")
	for sample, row := range sampleRows() {
		got, err := AppendRow(nil, sampleSchema, row)
		if err != nil {
			t.Fatal(err)
		}
		checkFrozen(t, stored, sample, got)
		back, err := DecodeRow(nil, sampleSchema, stored[sample])
		if err != nil || !sameRow(back, row) {
			t.Errorf("%s reads as %v, %v", sample, back, err)
		}
	}
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	var encoded []byte
	back := used()
	for range 2000 {
		row := randomRow(r)
		var err error
		if encoded, err = AppendRow(append(encoded[:0], "head"...), sampleSchema, row); err != nil {
			t.Fatal(err)
		}
		if back, err = DecodeRow(back, sampleSchema, encoded[4:]); err != nil || !sameRow(back, row) {
			t.Fatalf("%v came back as %v, %v", row, back, err)
		}
	}
}

func TestRowThatDoesNotFitItsSchemaIsRefusedByName(t *testing.T) {
	t.Parallel()
	good := sampleRows()["full"]
	for want, change := range map[string]func(Row) Row{
		"column s: null in a required column":                           func(r Row) Row { r[0] = NullValue(); return r },
		"column i: a value of type string in a column of type int64":    func(r Row) Row { r[1] = StringValue("1"); return r },
		"column t: a value of type int64 in a column of type timestamp": func(r Row) Row { r[5] = Int64Value(1); return r },
		"a row of 8 values for 9 columns":                               func(r Row) Row { return r[:8] },
	} {
		dst, err := AppendRow([]byte("head"), sampleSchema, change(append(Row(nil), good...)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if string(dst) != "head" {
			t.Errorf("%s: something was appended: %q", want, dst)
		}
	}
}

func TestMalformedRowsAreErrors(t *testing.T) {
	t.Parallel()
	one := func(k Kind) *Schema { return MustSchema(Column{Name: "c", Kind: k, Required: true}) }
	for name, c := range map[string]struct {
		schema *Schema
		bytes  string
	}{
		"no bitmap":           {one(Int64), ""},
		"null beyond columns": {one(Int64), "\x02\x00"},
		"null but required":   {one(Int64), "\x01"},
		"no varint":           {one(Int64), "\x00"},
		"cut varint":          {one(Int64), "\x00\x80"},
		"long varint":         {one(Int64), "\x00\x80\x00"},
		"varint over 64 bits": {one(Uint64), "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"},
		"cut double":          {one(Double), "\x00\x01\x02\x03\x04\x05\x06\x07"},
		"no boolean":          {one(Boolean), "\x00"},
		"boolean 2":           {one(Boolean), "\x00\x02"},
		"cut string":          {one(String), "\x00\x03ab"},
		"huge string":         {one(String), "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		"string of 2^63":      {one(String), "\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"},
		"trailing byte":       {one(String), "\x00\x01ab"},
	} {
		if _, err := DecodeRow(nil, c.schema, []byte(c.bytes)); !errors.Is(err, ErrRow) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestEveryCutOfARowIsAnError(t *testing.T) {
	t.Parallel()
	for sample, b := range frozen(t, "row") {
		for n := range b {
			if row, err := DecodeRow(nil, sampleSchema, b[:n]); err == nil {
				t.Errorf("%s cut after %d of %d bytes reads as %v", sample, n, len(b), row)
			}
		}
	}
}

func TestRowDecodingDoesNotAllocate(t *testing.T) {
	encoded, err := AppendRow(nil, sampleSchema, sampleRows()["full"])
	if err != nil {
		t.Fatal(err)
	}
	row := make(Row, 0, len(sampleSchema.Columns))
	if n := testing.AllocsPerRun(100, func() { row, err = DecodeRow(row, sampleSchema, encoded) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func FuzzDecodeRow(f *testing.F) {
	for _, b := range frozen(f, "row") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		row, err := DecodeRow(nil, sampleSchema, b)
		if err != nil {
			if !errors.Is(err, ErrRow) {
				t.Fatalf("error %v is no ErrRow", err)
			}
			return
		}
		again, err := AppendRow(nil, sampleSchema, row)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x is written again as %x, %v", b, again, err)
		}
	})
}
