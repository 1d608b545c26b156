package message

import (
	"strings"
	"testing"
)

var benchSchema = MustSchema(
	Column{Name: "user", Kind: String, Required: true}, Column{Name: "amount", Kind: Int64},
	Column{Name: "ts", Kind: Int64}, Column{Name: "pad", Kind: String})

var benchDocument = []byte(`{"user":"key-00001234","amount":17,"ts":1700000000000000,"pad":"` + strings.Repeat("p", 120) + `"}`)

func benchRow(tb testing.TB) Row {
	r, err := NewJSONDecoder(benchSchema).Decode(nil, benchDocument)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func BenchmarkJSONDecode(b *testing.B) {
	d, row := NewJSONDecoder(benchSchema), make(Row, 4)
	b.ReportAllocs()
	b.SetBytes(int64(len(benchDocument)))
	for b.Loop() {
		var err error
		if row, err = d.Decode(row, benchDocument); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONDecodeSpacedAndForeign(b *testing.B) {
	document := []byte(`{"id": 123456, "user": "key-00001234", "tags": ["a", "b", {"c": 1.5}], "amount": 17, "ok": true, "ts": 1700000000000000}`)
	d, row := NewJSONDecoder(benchSchema), make(Row, 4)
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		var err error
		if row, err = d.Decode(row, document); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONEncode(b *testing.B) {
	e, row := NewJSONEncoder(benchSchema), benchRow(b)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = e.Append(dst[:0], row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRowEncode(b *testing.B) {
	row := benchRow(b)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = AppendRow(dst[:0], benchSchema, row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRowDecode(b *testing.B) {
	row := benchRow(b)
	encoded, err := AppendRow(nil, benchSchema, row)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if row, err = DecodeRow(row, benchSchema, encoded); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnvelope(b *testing.B) {
	e := Envelope{ID: ID{Fingerprint: 1 << 63, Partition: 3, Offset: 1_000_000}, Swift: true, PrevOffset: 999_997,
		EventTime: 1_700_000_000_000_000, SystemTime: 1_700_000_000_010_000, Schema: 1 << 62}
	b.Run("encode", func(b *testing.B) {
		var dst []byte
		b.ReportAllocs()
		for b.Loop() {
			dst = AppendEnvelope(dst[:0], &e)
		}
	})
	b.Run("decode", func(b *testing.B) {
		encoded := AppendEnvelope(nil, &e)
		var out Envelope
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeEnvelope(encoded, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkKey(b *testing.B) {
	row := benchRow(b)
	for name, columns := range map[string][]int{"text": {0}, "array": {0, 1}} {
		b.Run(name, func(b *testing.B) {
			k := NewKeyEncoder(benchSchema, columns)
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, _, err = k.Append(dst[:0], row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPartition(b *testing.B) {
	key := []byte("key-00001234")
	var sum int32
	for b.Loop() {
		sum += Partition(key, 64)
	}
	if sum < 0 {
		b.Log(sum)
	}
}
