package functions

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/message"
)

// sampleCodec has a field of every operation and kind.
func sampleCodec() *accumulatorCodec {
	return &accumulatorCodec{fields: []kept{
		{"n", opCount, message.Int64},
		{"i", opSum, message.Int64},
		{"u", opSum, message.Uint64},
		{"mean", opAvg, message.Double},
		{"s", opFirst, message.String},
		{"j", opLast, message.JSON},
		{"b", opMax, message.Boolean},
		{"t", opMin, message.Timestamp},
		{"none", opLast, message.String},
	}}
}

func sampleState(c *accumulatorCodec) *accumulators {
	s := c.New().(*accumulators)
	s.fields[0].count = 300
	s.fields[1].set(message.Int64Value(-3))
	s.fields[2].set(message.Uint64Value(1 << 63))
	s.fields[3].count = 2
	s.fields[3].set(message.DoubleValue(1.5))
	s.fields[4].set(message.StringValue("first"))
	s.fields[5].set(message.JSONValue(`{}`))
	s.fields[6].set(message.BooleanValue(true))
	s.fields[7].set(message.Value{Kind: message.Timestamp, Num: 1_700_000_000_000_000})
	return s
}

// frozen is what version 1 wrote; a later version must still read it.
const (
	frozen            = "01ac0201050180808080808080808001" + "0201000000000000f83f" + "01056669727374" + "01027b7d" + "0101" + "018080f28183898506" + "00"
	frozenFingerprint = 0xdd4917f799f219a2
)

func TestStatesAreEncodedAsTheyAlwaysWere(t *testing.T) {
	t.Parallel()
	c := sampleCodec()
	b, err := c.Append(nil, sampleState(c))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != frozen {
		t.Errorf("got %s, want %s", got, frozen)
	}
	decoded, err := c.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.Append(nil, decoded); !bytes.Equal(again, b) {
		t.Errorf("decoded and encoded again: %x", again)
	}
	if c.Fingerprint() != frozenFingerprint {
		t.Errorf("fingerprint %#x, want %#x", c.Fingerprint(), uint64(frozenFingerprint))
	}
}

func TestFingerprintsTellFieldsApart(t *testing.T) {
	t.Parallel()
	seen := map[uint64]bool{sampleCodec().Fingerprint(): true}
	for i := range sampleCodec().fields {
		for _, change := range []func(*kept){
			func(k *kept) { k.name += "x" },
			func(k *kept) { k.op += "x" },
			func(k *kept) { k.kind = k.kind%message.JSON + 1 },
		} {
			c := sampleCodec()
			change(&c.fields[i])
			if print := c.Fingerprint(); seen[print] {
				t.Errorf("field %d: the fingerprint does not show the change", i)
			} else {
				seen[print] = true
			}
		}
	}
}

func TestDamagedStatesAreRefused(t *testing.T) {
	t.Parallel()
	c := sampleCodec()
	good, err := hex.DecodeString(frozen)
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := c.Decode(good[:n]); err == nil {
			t.Errorf("the first %d bytes are accepted", n)
		}
	}
	for name, text := range map[string]string{
		"left over":    frozen + "00",
		"version":      "02" + frozen[2:],
		"shortest":     "01ac8200" + frozen[6:],
		"neither 0":    frozen[:len(frozen)-2] + "02",
		"ends early":   strings.Replace(frozen, "01056669727374", "017f6669727374", 1),
		"field b":      strings.Replace(frozen, "7b7d0101", "7b7d0102", 1),
		"int overflow": "01ffffffffffffffffff01" + frozen[6:],
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Decode(b); err == nil {
			t.Errorf("%s: %s is accepted", name, text)
		} else if name != "int overflow" && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Append(nil, &accumulators{}); err == nil {
		t.Error("a state of other fields is encoded")
	}
}

func TestCopiesShareNothing(t *testing.T) {
	t.Parallel()
	c := sampleCodec()
	s := sampleState(c)
	before, _ := c.Append(nil, s)
	var dst any
	for range 2 { // the second one reuses the first
		dst = c.Copy(dst, s)
		if b, _ := c.Append(nil, dst); !bytes.Equal(b, before) {
			t.Fatalf("the copy is %x, want %x", b, before)
		}
	}
	s.fields[0].count++
	s.fields[1].set(message.Int64Value(9))
	s.fields[4].set(message.StringValue("other"))
	if b, _ := c.Append(nil, dst); !bytes.Equal(b, before) {
		t.Error("a change of the original changed the copy")
	}
	if c.Weight(s) < 300 || c.Weight(s) > 2000 {
		t.Errorf("weight %d", c.Weight(s))
	}
}

func TestALargeBufferIsGivenBack(t *testing.T) {
	t.Parallel()
	var a accumulator
	a.set(message.StringValue(strings.Repeat("x", 100_000)))
	a.set(message.StringValue("small"))
	if cap(a.text) > wasteful || a.value.Str != "small" {
		t.Errorf("%d bytes are kept for %q", cap(a.text), a.value.Str)
	}
}

func FuzzDecodeAccumulators(f *testing.F) {
	c := sampleCodec()
	good, _ := hex.DecodeString(frozen)
	f.Add(good)
	f.Add([]byte{accumulatorVersion, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := c.Decode(b)
		if err != nil {
			return
		}
		again, err := c.Append(nil, s)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x decodes, but encodes as %x (%v)", b, again, err)
		}
	})
}
