package statestore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"sort"
	"testing"
)

// frozenKeys are keys as they lie in topics. A change that breaks one of them breaks every running pipeline.
var frozenKeys = []struct {
	kind Kind
	name string
	key  string
	hex  string
}{
	{KindState, "count", "user-1", "010105636f756e74757365722d31"},
	{KindState, "count", "", "010105636f756e74"},
	{KindTimer, "", "\x00\x01", "0102000001"},
	{KindFrontier, "in", "p0", "010302696e7030"},
	{KindCatalog, "in", "\xff", "010402696eff"},
	{KindRunningNumber, "out", "k", "0105036f75746b"},
	{KindDelivery, "s", "k", "010601736b"},
	{KindWatermark, "ä", "k", "010702c3a46b"},
}

func TestFrozenKeysStayReadable(t *testing.T) {
	t.Parallel()
	for _, f := range frozenKeys {
		if got := hex.EncodeToString(AppendKey(nil, f.kind, f.name, []byte(f.key))); got != f.hex {
			t.Errorf("%s %q %q: encoded %s, frozen %s", f.kind, f.name, f.key, got, f.hex)
		}
		raw, err := hex.DecodeString(f.hex)
		if err != nil {
			t.Fatal(err)
		}
		kind, name, key, err := ParseKey(raw)
		if err != nil || kind != f.kind || string(name) != f.name || string(key) != f.key {
			t.Errorf("%s: parsed %s %q %q %v", f.hex, kind, name, key, err)
		}
	}
}

func TestFrozenValuesStayReadable(t *testing.T) {
	t.Parallel()
	const frozen = "0102030405060708616263"
	if got := hex.EncodeToString(AppendValue(nil, 0x0102030405060708, []byte("abc"))); got != frozen {
		t.Errorf("encoded %s, frozen %s", got, frozen)
	}
	raw, err := hex.DecodeString(frozen)
	if err != nil {
		t.Fatal(err)
	}
	fingerprint, payload, err := ParseValue(raw)
	if err != nil || fingerprint != 0x0102030405060708 || string(payload) != "abc" {
		t.Errorf("parsed %x %q %v", fingerprint, payload, err)
	}
	if _, payload, err = ParseValue(raw[:8]); err != nil || len(payload) != 0 {
		t.Errorf("an empty payload is a value, got %q %v", payload, err)
	}
}

func TestForeignRecordsAreTypedErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		key  string
		want error
	}{
		{"empty", "", ErrMalformed},
		{"short", "0101", ErrMalformed},
		{"later version", "02010161", ErrUnknownVersion},
		{"version zero", "00010161", ErrUnknownVersion},
		{"kind zero", "01000161", ErrMalformed},
		{"kind eight", "01080161", ErrMalformed},
		{"name longer than key", "01010261", ErrMalformed},
		{"name longer than allowed", "0101fa01" + string(bytes.Repeat([]byte("61"), 250)), ErrMalformed},
		{"length in too many bytes", "0101810061", ErrMalformed},
		{"length without end", "010180", ErrMalformed},
		{"length overflows", "0101ffffffffffffffffffff01", ErrMalformed},
	}
	for _, c := range cases {
		raw, err := hex.DecodeString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := ParseKey(raw); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	for n := range fingerprintBytes {
		if _, _, err := ParseValue(make([]byte, n)); !errors.Is(err, ErrMalformed) {
			t.Errorf("value of %d bytes: got %v", n, err)
		}
	}
}

func TestKeysOfOneStateKeepTheOrderOfTheirKeyBytes(t *testing.T) {
	t.Parallel()
	keys := [][]byte{nil, {0}, {0, 0}, {0, 255}, {1}, {127}, {128}, {255}, {255, 255}}
	if !sort.SliceIsSorted(keys, func(i, j int) bool {
		return bytes.Compare(AppendKey(nil, KindTimer, "n", keys[i]), AppendKey(nil, KindTimer, "n", keys[j])) < 0
	}) {
		t.Error("rows are not in the order of their key bytes")
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range frozenKeys {
		raw, err := hex.DecodeString(s.hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{1, 1, 0x81, 0, 'a'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		kind, name, key, err := ParseKey(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownVersion) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if again := AppendKey(nil, kind, string(name), key); !bytes.Equal(again, raw) {
			t.Fatalf("%x parsed and encoded again is %x", raw, again)
		}
	})
}

func FuzzParseValue(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("01234567payload"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		fingerprint, payload, err := ParseValue(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if again := AppendValue(nil, fingerprint, payload); !bytes.Equal(again, raw) {
			t.Fatalf("%x parsed and encoded again is %x", raw, again)
		}
	})
}
