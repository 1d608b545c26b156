package joblog

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func sample() Record {
	return Record{
		Kind: Epoch, Complete: true, Generation: 3, Term: 7, EpochTerm: 7, EpochNumber: 41, Worker: "w1", Job: 1, Jobs: 4, At: 1700000000000,
		Offsets: []Offset{
			{Stage: "split", Topic: "lines", TopicID: [16]byte{1, 2, 3}, Partition: 1, Offset: 1000},
			{Stage: "split", Topic: "lines", TopicID: [16]byte{1, 2, 3}, Partition: 5, Offset: 999},
			{Stage: "count", Topic: "p.words", TopicID: [16]byte{4}, Partition: 1, Offset: 70000},
		},
		Watermarks: []Watermark{{Stage: "count", Partition: 1, Event: math.MinInt64, System: 1700000000000000}},
		Ends:       []End{{Topic: "p.words", TopicID: [16]byte{4}, Partition: 9, Offset: 12}, {Topic: "counts", Partition: 0, Offset: 5}},
		Troubles:   []Trouble{{Stage: "split", Partition: 5, Topic: "lines", Offset: 999, Key: "\xff", Cause: "overflow", Since: 1, NextRetry: 2, Attempts: 3}},
		Stats:      []Stats{{Stage: "split", In: 1, Out: 2, Skipped: 3, DeadLetter: 4, Duplicates: 5, Gaps: 6, Foreign: 7}},
	}
}

func TestRecordSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	delta := sample()
	delta.Complete, delta.Worker, delta.Watermarks, delta.Troubles = false, "", nil, nil
	var e Encoder
	for _, r := range []Record{sample(), {Kind: Acquired, Complete: true}, delta, {Kind: Fence, Complete: true, Generation: math.MaxUint64, At: math.MinInt64}} {
		b := e.Append(nil, &r)
		got, err := Decode(b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got, r)
		}
		if again := Encode(&r); string(again) != string(b) {
			t.Errorf("an encoder that was used before writes %x, a new one %x", b, again)
		}
		for n := range b {
			if _, err := Decode(b[:n]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("first %d of %d bytes: %v", n, len(b), err)
			}
		}
		if _, err := Decode(append(b, 0)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("one byte more: %v", err)
		}
	}
}

const frozenRecord = "01020103070729010480a0abfef962027731020573706c697405636f756e7404056c696e6573010102030000000000000000000000000007702e776f726473010400000000000000000000000000000006636f756e747300056c696e65730003000001d00f000005ce0f010101e0c508010101ffffffffffffffffff018080f281838985060201091802000a01000503ce0f01ff086f766572666c6f77020403010001020304050607"

func TestRecordIsFrozen(t *testing.T) {
	t.Parallel()
	r := sample()
	if got := hex.EncodeToString(Encode(&r)); got != frozenRecord {
		t.Errorf("encoding has changed:\n%s", got)
	}
}

func TestDecodeRefusesWhatNobodyWrites(t *testing.T) {
	t.Parallel()
	r := Record{Kind: Epoch}
	b := Encode(&r)
	for name, change := range map[string]func(b []byte){
		"version":             func(b []byte) { b[0] = 2 },
		"no kind":             func(b []byte) { b[1] = 0 },
		"kind":                func(b []byte) { b[1] = 5 },
		"flags":               func(b []byte) { b[2] = 2 },
		"incomplete acquired": func(b []byte) { b[1] = byte(Acquired) },
		"incomplete fence":    func(b []byte) { b[1] = byte(Fence) },
		"long list":           func(b []byte) { b[len(b)-1] = 100 },
		"long text":           func(b []byte) { b[10] = 100 },
	} {
		c := append([]byte(nil), b...)
		change(c)
		if got, err := Decode(c); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTextsOfTroublesAreCut(t *testing.T) {
	t.Parallel()
	r := Record{Kind: Epoch, Troubles: []Trouble{{Key: strings.Repeat("k", 1000), Cause: strings.Repeat("ä", 1000) + "x"}}}
	got, err := Decode(Encode(&r))
	if err != nil || len(got.Troubles[0].Key) != MaxKey || got.Troubles[0].Cause != strings.Repeat("ä", MaxCause/2) {
		t.Errorf("%v: key %d, cause %d bytes", err, len(got.Troubles[0].Key), len(got.Troubles[0].Cause))
	}
}

func FuzzDecode(f *testing.F) {
	r := sample()
	f.Add(Encode(&r))
	f.Add(Encode(&Record{Kind: Probe}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(Encode(&r))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%v\n%+v\n%+v", err, r, again)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	r := sample()
	for i := range int32(64) {
		r.Offsets = append(r.Offsets, Offset{Stage: "count", Topic: "p.words", TopicID: [16]byte{4}, Partition: i, Offset: 1e6 + int64(i)})
		r.Ends = append(r.Ends, End{Topic: "p.words", TopicID: [16]byte{4}, Partition: i, Offset: 1e6})
	}
	var e Encoder
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = e.Append(dst[:0], &r)
	}
	b.ReportMetric(float64(len(dst)), "bytes")
}
