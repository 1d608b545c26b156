package dedup

import (
	"encoding/hex"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kafka-processor/processor/processor/message"
)

func TestVerdictsOfTheFrontier(t *testing.T) {
	t.Parallel()
	f := NewFrontier()
	f.KnownLine(1)
	at := func(partition uint32, offset, ordinal uint64) message.ID {
		return message.ID{Fingerprint: 1, Partition: partition, Offset: offset, Ordinal: ordinal}
	}
	f.Advance(at(3, 10, 2))
	if err := f.Load([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}, []byte{1, 3, 1, 1}); err != nil {
		t.Fatal(err)
	}
	lines := map[uint64]bool{}
	f.Lines(func(fingerprint uint64, known bool) { lines[fingerprint] = known })
	if !maps.Equal(lines, map[uint64]bool{1: true, 7: false}) {
		t.Errorf("lines %v", lines)
	}
	for _, c := range []struct {
		name         string
		id           message.ID
		swift, start bool
		prevOffset   uint64
		prevOrdinal  uint64
		want         Verdict
	}{
		{"the same id", at(3, 10, 2), true, false, 10, 1, Duplicate},
		{"a lower ordinal", at(3, 10, 1), true, false, 10, 0, Duplicate},
		{"a lower offset with a higher ordinal", at(3, 9, 9), true, true, 0, 0, Duplicate},
		{"the same offset with a higher ordinal", at(3, 10, 3), true, false, 10, 2, Accept},
		{"a line that was loaded but is not known", message.ID{Fingerprint: 7, Partition: 3, Offset: 99}, true, true, 0, 0, Foreign},
		{"the next, after the frontier", at(3, 11, 0), true, false, 10, 2, Accept},
		{"after something below the frontier", at(3, 11, 0), true, false, 7, 0, Accept},
		{"after something above it", at(3, 12, 0), true, false, 10, 3, Gap},
		{"after a later offset with a lower ordinal", at(3, 12, 0), true, false, 11, 0, Gap},
		{"start of an attempt", at(3, 30, 0), true, true, 0, 0, Accept},
		{"another origin, in the middle", at(4, 1, 0), true, false, 0, 0, Gap},
		{"an origin far beyond, in the middle", at(9999, 1, 0), true, false, 0, 0, Gap},
		{"another origin, start", at(4, 0, 0), true, true, 0, 0, Accept},
		{"transactional, whatever came before", at(3, 50, 0), false, false, 40, 0, Accept},
		{"transactional, repeated", at(3, 10, 2), false, false, 0, 0, Duplicate},
		{"another line", message.ID{Fingerprint: 2, Partition: 3, Offset: 99}, true, true, 0, 0, Foreign},
		{"an origin out of bounds", at(MaxOrigins, 1, 0), true, true, 0, 0, Foreign},
	} {
		for range 2 { // asking changes nothing
			if got := f.Check(c.id, c.swift, c.start, c.prevOffset, c.prevOrdinal); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
	}
}

// positions is all that a frontier knows.
func positions(f *Frontier) map[message.ID]bool {
	all := map[message.ID]bool{}
	for p, r := range f.runs {
		for i, l := range r.lanes {
			if l.seen {
				all[message.ID{Fingerprint: p, Partition: uint32(i), Offset: l.offset, Ordinal: l.ordinal}] = true
			}
		}
	}
	return all
}

// What AppendDirty hands out, kept by key like a compacted changelog, is the frontier, whatever was undone and forgotten.
func TestStoredFrontierIsTheFrontier(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	f := NewFrontier()
	stored := map[string]string{}
	save := func() (n int) {
		f.AppendDirty(func(key, value []byte) {
			n++
			if len(value) == 0 {
				delete(stored, string(key))
				return
			}
			stored[string(key)] = string(value)
		})
		return n
	}
	for round := range 300 {
		before := positions(f)
		mark := f.Mark()
		for range r.IntN(20) {
			f.Advance(message.ID{Fingerprint: 1 + r.Uint64N(3), Partition: r.Uint32N(200), Offset: r.Uint64() >> r.IntN(64), Ordinal: r.Uint64N(300)})
		}
		if r.IntN(3) == 0 {
			f.Undo(mark)
			if !maps.Equal(before, positions(f)) {
				t.Fatalf("seed %d, round %d: undo does not give back what was", seed, round)
			}
		}
		f.Release()
		if r.IntN(30) == 0 {
			f.Forget(1 + r.Uint64N(3))
		}
		save()
		if n := save(); n != 0 {
			t.Fatalf("seed %d, round %d: %d entries dirty after they were handed out", seed, round, n)
		}
		g := NewFrontier()
		for k, v := range stored {
			if err := g.Load([]byte(k), []byte(v)); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(positions(f), positions(g)) {
			t.Fatalf("seed %d, round %d: loaded frontier differs", seed, round)
		}
		g.AppendDirty(func(key, _ []byte) { t.Fatalf("seed %d: loaded entry %x is dirty", seed, key) })
	}
}

func TestUndoKeepsOuterMarks(t *testing.T) {
	t.Parallel()
	f := NewFrontier()
	id := message.ID{Fingerprint: 1, Offset: 1}
	outer := f.Mark()
	f.Advance(id)
	inner := f.Mark()
	id.Offset = 2
	f.Advance(id)
	f.Undo(inner)
	if l := f.runs[1].lanes[0]; l.offset != 1 {
		t.Errorf("inner undo leaves %+v", l)
	}
	f.Undo(outer)
	if l := f.runs[1].lanes[0]; l.seen {
		t.Errorf("outer undo leaves %+v", l)
	}
	f.AppendDirty(func(key, value []byte) {
		if value != nil {
			t.Errorf("empty group stored as %x", value)
		}
	})
}

func TestStoredEntryIsFrozen(t *testing.T) {
	t.Parallel()
	f := NewFrontier()
	f.Advance(message.ID{Fingerprint: 0x0102030405060708, Partition: 33, Offset: 300, Ordinal: 1})
	f.Advance(message.ID{Fingerprint: 0x0102030405060708, Partition: 63, Offset: 7, Ordinal: 0})
	f.AppendDirty(func(key, value []byte) {
		if k, v := hex.EncodeToString(key), hex.EncodeToString(value); k != "010203040506070800000001" || v != "0101ac02011f0700" {
			t.Errorf("key %s, value %s", k, v)
		}
	})
}

func TestLoadRefusesCorruptEntries(t *testing.T) {
	t.Parallel()
	key := make([]byte, keySize)
	for name, c := range map[string][2][]byte{
		"short key":            {key[:11], {1, 0, 1, 1}},
		"group out of bounds":  {append(slices.Clone(key[:8]), 0xff, 0, 0, 0), {1, 0, 1, 1}},
		"version":              {key, {2, 0, 1, 1}},
		"nothing in it":        {key, {1}},
		"origin beyond":        {key, {1, 32, 1, 1}},
		"origins not in order": {key, {1, 1, 1, 1, 1, 1, 1}},
		"cut short":            {key, {1, 0, 1}},
		"integer cut short":    {key, {1, 0, 1, 0x80}},
		"integer too long":     {key, {1, 0, 1, 0x80, 0}},
	} {
		if err := NewFrontier().Load(c[0], c[1]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte{1, 0, 1, 1})
	f.Add([]byte{1, 1, 0xac, 2, 1, 31, 7, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		a := NewFrontier()
		if a.Load(make([]byte, keySize), value) != nil || len(value) == 0 {
			return
		}
		if again := a.appendValue(a.of(0), 0); !slices.Equal(again, value) {
			t.Fatalf("%x is encoded again as %x", value, again)
		}
	})
}

func TestChainLinksToWhatWasHandedOverLast(t *testing.T) {
	t.Parallel()
	c := NewChain(3)
	for _, s := range []struct {
		origin          uint32
		target          int32
		offset, ordinal uint64
		start           bool
		prev            [2]uint64
	}{
		{0, 0, 5, 0, true, [2]uint64{}},
		{0, 1, 5, 1, true, [2]uint64{}},
		{0, 0, 5, 2, false, [2]uint64{5, 0}},
		{700, 2, 1, 0, true, [2]uint64{}},
		{0, 0, 6, 0, false, [2]uint64{5, 2}},
		{0, 1, 9, 0, false, [2]uint64{5, 1}},
		{700, 2, 1, 1, false, [2]uint64{1, 0}},
		{699, 2, 1, 0, true, [2]uint64{}},
	} {
		start, offset, ordinal := c.Next(s.origin, s.target, s.offset, s.ordinal)
		if start != s.start || [2]uint64{offset, ordinal} != s.prev {
			t.Errorf("%+v: start %v, previous (%d,%d)", s, start, offset, ordinal)
		}
	}
	for name, next := range map[string]func(){
		"repeated id":     func() { c.Next(0, 0, 6, 0) },
		"lower id":        func() { c.Next(0, 0, 5, 9) },
		"target too high": func() { c.Next(0, 3, 9, 0) },
		"origin too high": func() { c.Next(MaxOrigins, 0, 9, 0) },
		"negative target": func() { c.Next(0, -1, 9, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", name)
				}
			}()
			next()
		}()
	}
}

func TestFingerprintNamesEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[uint64]bool{}
	id := [16]byte{1}
	for _, p := range []uint64{
		Fingerprint(1, "a", "b", id, 1), Fingerprint(2, "a", "b", id, 1), Fingerprint(1, "ab", "", id, 1), Fingerprint(1, "", "ab", id, 1),
		Fingerprint(1, "a", "c", id, 1), Fingerprint(1, "a", "b", [16]byte{}, 1), Fingerprint(1, "a", "b", id, 2),
	} {
		if seen[p] || p == 0 {
			t.Errorf("fingerprint %x again", p)
		}
		seen[p] = true
	}
	if p := Fingerprint(1, "split", "lines", id, 1); p != frozenFingerprint {
		t.Errorf("fingerprints have changed: %#x", p)
	}
}

const frozenFingerprint = 0x28830f806b388f19

// Not parallel: it counts allocations.
func TestNothingIsAllocatedForARecord(t *testing.T) {
	f, c := NewFrontier(), NewChain(16)
	f.KnownLine(1)
	f.KnownLine(2)
	offset := uint64(0)
	record := func() {
		offset++
		for p := uint64(1); p <= 2; p++ {
			id := message.ID{Fingerprint: p, Partition: uint32(offset % 64), Offset: offset}
			mark := f.Mark()
			if f.Check(id, true, true, 0, 0) == Accept {
				f.Advance(id)
			}
			f.Undo(mark)
			f.Advance(id)
			f.Release()
		}
		c.Next(uint32(offset%64), int32(offset%16), offset, 0)
	}
	for range 2000 {
		record()
	}
	if n := testing.AllocsPerRun(1000, record); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

func BenchmarkCheckAndAdvance(b *testing.B) {
	f := NewFrontier()
	f.KnownLine(1)
	for i := 0; b.Loop(); i++ {
		id := message.ID{Fingerprint: 1, Partition: uint32(i % 16), Offset: uint64(i)}
		if f.Check(id, true, true, 0, 0) == Accept {
			f.Advance(id)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	c := NewChain(16)
	for i := 0; b.Loop(); i++ {
		c.Next(uint32(i/16%16), int32(i%16), uint64(i), 0)
	}
}
