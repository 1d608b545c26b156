package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestIDsOfEarlierVersionsAreRead(t *testing.T) {
	t.Parallel()
	stored := frozen(t, "id")
	for sample, id := range sampleIDs() {
		checkFrozen(t, stored, sample, id.AppendBinary(nil))
		if back, err := ParseID(stored[sample]); err != nil || back != id {
			t.Errorf("%s reads as %+v, %v", sample, back, err)
		}
		if want := strings.ToUpper(hex.EncodeToString(stored[sample])); id.Hex() != want {
			t.Errorf("%s in hex is %s, want %s", sample, id.Hex(), want)
		}
	}
}

// randomNeighbour differs from id in one field at most.
func randomNeighbour(r *rand.Rand, id ID) ID {
	switch r.IntN(5) {
	case 0:
		id.Fingerprint = randomNumber(r)
	case 1:
		id.Partition = uint32(randomNumber(r))
	case 2:
		id.Offset = randomNumber(r)
	case 3:
		id.Ordinal = randomNumber(r)
	}
	return id
}

func TestBytesOfIDsSortAsIDsDo(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	var orders [3]int
	for range 20000 {
		a := ID{randomNumber(r), randomNumber(r), randomNumber(r), uint32(randomNumber(r))}
		b := randomNeighbour(r, a)
		x, y := a.AppendBinary(nil), b.AppendBinary(nil)
		got := Compare(a, b)
		if got != bytes.Compare(x, y) {
			t.Fatalf("Compare(%+v, %+v) = %d, of %x and %x %d", a, b, got, x, y, bytes.Compare(x, y))
		}
		if got != 0 && bytes.HasPrefix(y, x) {
			t.Fatalf("%x is a prefix of %x", x, y)
		}
		if back, err := ParseID(x); err != nil || back != a {
			t.Fatalf("%+v came back as %+v, %v", a, back, err)
		}
		orders[got+1]++
	}
	if orders[0] == 0 || orders[1] == 0 || orders[2] == 0 {
		t.Errorf("too little was tried: %v", orders)
	}
}

func TestMalformedIDsAreErrors(t *testing.T) {
	t.Parallel()
	head := strings.Repeat("\x01", idHead)
	for name, b := range map[string]string{
		"empty": "", "no ordinal": head, "byte behind an inline ordinal": head + "\x00\x00", "cut ordinal": head + "\xf1\x01",
		"ordinal too long": head + "\xf0\xf0\x00", "not shortest, one byte": head + "\xf0\xef", "not shortest, zero in front": head + "\xf1\x00\xff",
		"unknown suffix": head + "\xf8\x01\x02\x03\x04\x05\x06\x07\x08", "no bytes of ordinal": head + "\xf0",
	} {
		if id, err := ParseID([]byte(b)); !errors.Is(err, ErrID) {
			t.Errorf("%s reads as %+v, %v", name, id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, b := range frozen(f, "id") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := ParseID(b)
		if err != nil {
			if !errors.Is(err, ErrID) {
				t.Fatalf("error %v is no ErrID", err)
			}
			return
		}
		if again := id.AppendBinary(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}
