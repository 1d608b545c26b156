package message

import (
	"errors"
	"strings"
	"testing"
)

func TestKeyOfOneStringIsItsBytes(t *testing.T) {
	t.Parallel()
	k := NewKeyEncoder(sampleSchema, []int{7})
	row := append(Row(nil), sampleRows()["full"]...)
	for _, s := range []string{"", "a", "\xff\x00", "[1]", "null"} {
		row[7] = StringValue(s)
		key, null, err := k.Append(nil, row)
		if err != nil || null || key == nil || string(key) != s {
			t.Errorf("the key of %q is %q, null %v, %v", s, key, null, err)
		}
		if back, err := k.Decode(key); err != nil || !sameRow(back, Row{row[7]}) {
			t.Errorf("the key of %q reads as %v, %v", s, back, err)
		}
	}
}

func TestKeyOfOneNullStringIsNull(t *testing.T) {
	t.Parallel()
	k := NewKeyEncoder(sampleSchema, []int{7})
	key, null, err := k.Append([]byte("head"), sampleRows()["nulls"])
	if err != nil || !null || string(key) != "head" {
		t.Errorf("key %q, null %v, %v", key, null, err)
	}
	if back, err := k.Decode(nil); err != nil || !sameRow(back, Row{NullValue()}) {
		t.Errorf("null reads as %v, %v", back, err)
	}
}

func TestKeyOfRequiredStringIsNeverNull(t *testing.T) {
	t.Parallel()
	k := NewKeyEncoder(sampleSchema, []int{0})
	row := append(Row(nil), sampleRows()["nulls"]...)
	row[0] = NullValue()
	if _, null, err := k.Append(nil, row); !errors.Is(err, errNullRequired) || null {
		t.Errorf("null %v, %v", null, err)
	}
	if back, err := k.Decode(nil); !errors.Is(err, ErrKey) {
		t.Errorf("null reads as %v, %v", back, err)
	}
}

func TestOtherKeysAreJSONArrays(t *testing.T) {
	t.Parallel()
	rows := sampleRows()
	full := append(Row(nil), rows["full"]...)
	for want, c := range map[string]struct {
		columns []int
		row     Row
	}{
		`[-300]`:      {[]int{1}, full},
		`[null]`:      {[]int{1}, rows["nulls"]},
		`[]`:          {nil, full},
		`["","word"]`: {[]int{7, 0}, full},
		`[9223372036854775807,18446744073709551615,1.5,true,"2023-11-14T22:13:20.123456Z",{"a":[1,2]},null]`: {[]int{8, 2, 3, 4, 5, 6, 7}, append(append(Row(nil), full[:7]...), NullValue(), full[8])},
	} {
		k := NewKeyEncoder(sampleSchema, c.columns)
		key, null, err := k.Append([]byte("head"), c.row)
		if err != nil || null || string(key) != "head"+want {
			t.Errorf("the key is %s, null %v, %v; want %s", key, null, err, want)
			continue
		}
		back, err := k.Decode(key[4:])
		if err != nil || len(back) != len(c.columns) {
			t.Errorf("%s reads as %v, %v", want, back, err)
			continue
		}
		for i, column := range c.columns {
			if !Equal(back[i], c.row[column]) {
				t.Errorf("%s: column %d reads as %+v, want %+v", want, column, back[i], c.row[column])
			}
		}
	}
}

func TestKeyThatCannotBeWrittenNamesItsColumn(t *testing.T) {
	t.Parallel()
	row := append(Row(nil), sampleRows()["full"]...)
	row[7] = StringValue("\xff")
	key, _, err := NewKeyEncoder(sampleSchema, []int{1, 7}).Append([]byte("head"), row)
	if !errors.Is(err, errJSONUTF8) || !strings.Contains(err.Error(), "column s2") || string(key) != "head" {
		t.Errorf("key %s, %v", key, err)
	}
	row[1] = StringValue("1")
	if _, _, err := NewKeyEncoder(sampleSchema, []int{1}).Append(nil, row); err == nil {
		t.Error("a value of another kind became a key")
	}
}

func TestMalformedKeysAreErrors(t *testing.T) {
	t.Parallel()
	k := NewKeyEncoder(sampleSchema, []int{0, 1})
	for _, key := range []string{``, `[`, `[]`, `["a"]`, `["a",1`, `["a",1,2]`, `["a",1]x`, `["a",1] `, `[null,1]`, `["a" ,1]`, `["a","x"]`, `{"a":1}`} {
		if row, err := k.Decode([]byte(key)); !errors.Is(err, ErrKey) {
			t.Errorf("%s reads as %v, %v", key, row, err)
		}
	}
	if row, err := NewKeyEncoder(sampleSchema, nil).Decode([]byte("[1]")); !errors.Is(err, ErrKey) {
		t.Errorf("a key of no columns reads as %v, %v", row, err)
	}
}

func TestStringsOfAKeyOutliveTheNextKey(t *testing.T) {
	t.Parallel()
	k := NewKeyEncoder(sampleSchema, []int{0, 7})
	first, err := k.Decode([]byte(`["a\tb","c"]`))
	if err != nil {
		t.Fatal(err)
	}
	second := []byte(`["X\nY","z"]`)
	for range 20 {
		if row, err := k.Decode(second); err != nil || row[0].Str != "X\nY" {
			t.Fatal(row, err)
		}
	}
	if held := cap(k.values.buffer); held > len(second) {
		t.Errorf("%d bytes are held for keys that were read before", held)
	}
	if first[0].Str != "a\tb" {
		t.Errorf("the first key's row became %v", first)
	}
}

func TestKeysDoNotAllocate(t *testing.T) {
	row := sampleRows()["full"]
	for _, columns := range [][]int{{0}, {0, 1}} {
		k := NewKeyEncoder(sampleSchema, columns)
		key, back := make([]byte, 0, 100), make(Row, 0, 2)
		var err error
		n := testing.AllocsPerRun(100, func() {
			if key, _, err = k.Append(key[:0], row); err == nil {
				back, err = k.DecodeTo(back, key)
			}
		})
		if n != 0 || err != nil {
			t.Errorf("columns %v: %v allocations, %v", columns, n, err)
		}
	}
}

func FuzzDecodeKey(f *testing.F) {
	for _, key := range []string{``, `["a",1,2.5,{"a":[]}]`, `["\u00e4",null,null,null]`, `["a",-9223372036854775808,1e300,"x"]`, `[]`} {
		f.Add([]byte(key))
	}
	columns := []int{0, 1, 3, 6}
	f.Fuzz(func(t *testing.T, key []byte) {
		k := NewKeyEncoder(sampleSchema, columns)
		row, err := k.Decode(key)
		if err != nil {
			if !errors.Is(err, ErrKey) {
				t.Fatalf("error %v is no ErrKey", err)
			}
			return
		}
		whole := make(Row, len(sampleSchema.Columns))
		for i, column := range columns {
			whole[column] = row[i]
		}
		again, _, err := k.Append(nil, whole)
		if err != nil {
			t.Fatalf("%s reads as %v, which is no key: %v", key, row, err)
		}
		if back, err := k.Decode(again); err != nil || !sameRow(back, row) {
			t.Fatalf("%s is written again as %s, which reads as %v, %v", key, again, back, err)
		}
	})
}
