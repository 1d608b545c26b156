package message

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestEnvelopesOfEarlierVersionsAreRead(t *testing.T) {
	t.Parallel()
	stored := frozen(t, "envelope")
	for sample, e := range sampleEnvelopes() {
		checkFrozen(t, stored, sample, AppendEnvelope(nil, &e))
		var back Envelope
		rest, err := DecodeEnvelope(append(stored[sample], "row"...), &back)
		if err != nil || back != e || string(rest) != "row" {
			t.Errorf("%s reads as %+v with %q behind it, %v", sample, back, rest, err)
		}
	}
}

func randomEnvelope(r *rand.Rand) Envelope {
	e := Envelope{
		ID:        ID{randomNumber(r), randomNumber(r), randomNumber(r), uint32(randomNumber(r))},
		EventTime: int64(randomNumber(r)), SystemTime: int64(randomNumber(r)), Schema: randomNumber(r), Swift: r.IntN(3) > 0,
	}
	if e.Swift {
		e.Start = r.IntN(3) == 0
	}
	if e.Swift && !e.Start {
		e.PrevOffset, e.PrevOrdinal = randomNumber(r), randomNumber(r)
		if r.IntN(2) == 0 {
			e.PrevOffset = e.ID.Offset
		}
	}
	return e
}

func TestEnvelopesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	back := Envelope{Swift: true, Start: true, PrevOffset: 1}
	for range 5000 {
		e := randomEnvelope(r)
		rest, err := DecodeEnvelope(AppendEnvelope(nil, &e), &back)
		if err != nil || back != e || len(rest) != 0 {
			t.Fatalf("%+v came back as %+v, %v", e, back, err)
		}
	}
}

func TestEnvelopeOfUnknownVersionHasItsOwnError(t *testing.T) {
	t.Parallel()
	e := sampleEnvelopes()["before"]
	b := AppendEnvelope(nil, &e)
	b[0]++
	if _, err := DecodeEnvelope(b, &e); !errors.Is(err, ErrVersion) || errors.Is(err, ErrEnvelope) {
		t.Errorf("error %v", err)
	}
}

func TestMalformedEnvelopesAreErrors(t *testing.T) {
	t.Parallel()
	var e Envelope
	for sample, b := range frozen(t, "envelope") {
		for n := range b {
			if _, err := DecodeEnvelope(b[:n], &e); !errors.Is(err, ErrEnvelope) {
				t.Errorf("%s cut after %d of %d bytes: error %v", sample, n, len(b), err)
			}
		}
		for _, flags := range []byte{flagStart, 4, 0x80} {
			b[1] = flags
			if _, err := DecodeEnvelope(b, &e); !errors.Is(err, ErrEnvelope) {
				t.Errorf("%s with flags %#x: error %v", sample, flags, err)
			}
		}
	}
	wide := append([]byte{envelopeVersion, 0}, make([]byte, 16)...)
	wide = append(wide, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0, 0) // partition 1<<32
	if _, err := DecodeEnvelope(wide, &e); !errors.Is(err, ErrEnvelope) {
		t.Errorf("a partition beyond 32 bits: error %v", err)
	}
}

func FuzzDecodeEnvelope(f *testing.F) {
	for _, b := range frozen(f, "envelope") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Envelope
		rest, err := DecodeEnvelope(b, &e)
		if err != nil {
			if !errors.Is(err, ErrEnvelope) && !errors.Is(err, ErrVersion) {
				t.Fatalf("error %v has no kind", err)
			}
			return
		}
		if again := append(AppendEnvelope(nil, &e), rest...); !bytes.Equal(again, b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}
