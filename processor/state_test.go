package processor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/statestore"
	"github.com/kafka-processor/processor/statestore/memory"
)

// total is the object of the tests' states; one of 0 encodes to nothing, which deletes the row.
type total struct{ n int64 }

type totalCodec struct{ fail *bool }

func (totalCodec) New() any { return &total{} }

func (totalCodec) Decode(b []byte) (any, error) {
	if len(b) != 8 {
		return nil, fmt.Errorf("%d bytes", len(b))
	}
	return &total{int64(binary.BigEndian.Uint64(b))}, nil
}

func (c totalCodec) Append(dst []byte, obj any) ([]byte, error) {
	if c.fail != nil && *c.fail {
		return nil, errors.New("cannot be encoded")
	}
	if n := obj.(*total).n; n != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst, nil
}

func (totalCodec) Copy(dst, src any) any {
	d, _ := dst.(*total)
	if d == nil {
		d = &total{}
	}
	*d = *src.(*total)
	return d
}

func (totalCodec) Weight(any) int      { return 64 }
func (totalCodec) Fingerprint() uint64 { return 77 }

// rows is a plain model of the tables of a partition: (table, key) to value, no zeros.
type rows map[[2]string]int64

// put keeps the model free of zeros, as the store is free of empty rows.
func (r rows) put(table, key string, n int64) {
	if n == 0 {
		delete(r, [2]string{table, key})
		return
	}
	r[[2]string{table, key}] = n
}

// stateWorld drives a partitionState and the model side by side.
type stateWorld struct {
	t       *testing.T
	rnd     *rand.Rand
	handle  statestore.Handle
	state   *partitionState
	arena   *arena
	open    rows // what a message sees
	sealed  rows // as of the last seal
	stored  rows // as of the last applied epoch
	number  uint64
	sending []statestore.Change // of the epoch being sent
	copies  []statestore.Change // the same, copied when it was sealed
	evicted bool
}

var stateTables = []string{"first", "second"}

func (w *stateWorld) fresh() {
	w.state = newPartitionState(w.handle, []functions.StateDecl{{Name: "first", Codec: totalCodec{}}, {Name: "second", Codec: totalCodec{}}}, 6000)
	w.arena, w.number, w.sending, w.copies = &arena{}, 0, nil, nil
	w.open, w.sealed = maps.Clone(w.stored), maps.Clone(w.stored)
}

// message does random things to a key and fails now and then.
func (w *stateWorld) message(key string) {
	before := maps.Clone(w.open)
	w.state.begin([]byte(key))
	for range w.rnd.IntN(4) {
		i := w.rnd.IntN(len(stateTables))
		at := [2]string{stateTables[i], key}
		switch w.rnd.IntN(5) {
		case 0:
			w.state.Delete(i)
			delete(w.open, at)
		case 1, 2, 3:
			obj, err := w.state.Modify(i)
			if err != nil {
				w.t.Fatal(err)
			}
			n := w.open[at] + w.rnd.Int64N(3) - 1
			obj.(*total).n = n
			w.open.put(at[0], key, n)
		}
		w.same(i, key)
	}
	if w.rnd.IntN(4) == 0 {
		w.state.rollback()
		w.open = before
		for i := range stateTables {
			w.same(i, key)
		}
	}
}

// same compares what a function would get with the model. A zero object that is not sealed yet is as good as none.
func (w *stateWorld) same(i int, key string) {
	obj, err := w.state.Get(i)
	if err != nil {
		w.t.Fatal(err)
	}
	got := int64(0)
	if obj != nil {
		got = obj.(*total).n
	}
	if want := w.open[[2]string{stateTables[i], key}]; got != want {
		w.t.Fatalf("state %s of key %s is %d, want %d", stateTables[i], key, got, want)
	}
}

// slice is a batch of messages: load, process, turn.
func (w *stateWorld) slice(keys int) {
	var batch [][]byte
	for range 1 + w.rnd.IntN(8) {
		batch = append(batch, fmt.Appendf(nil, "key-%02d", w.rnd.IntN(keys)))
	}
	if w.rnd.IntN(4) == 0 {
		batch = append(batch, nil, batch[0])
	}
	if err := w.state.load(batch); err != nil {
		w.t.Fatal(err)
	}
	for _, k := range batch {
		if k != nil {
			w.message(string(k))
		}
	}
	held := len(w.state.tables[0].young) + len(w.state.tables[0].old)
	w.state.turn()
	w.evicted = w.evicted || len(w.state.tables[0].young)+len(w.state.tables[0].old) < held
}

// seal compares the changelog records with the difference between the model now and at the last seal: nothing for what is
// unchanged, an empty value for what is gone.
func (w *stateWorld) seal() {
	w.number++
	want := map[string]int64{}
	for _, r := range []rows{w.open, w.sealed} {
		for at := range r {
			if w.open[at] != w.sealed[at] {
				want[string(statestore.AppendKey(nil, statestore.KindState, at[0], []byte(at[1])))] = w.open[at]
			}
		}
	}
	err := w.state.seal(w.number, w.arena, func(key, value []byte) {
		n, ok := want[string(key)]
		if !ok {
			w.t.Fatalf("epoch %d writes %q, which has not changed, or twice", w.number, key)
		}
		delete(want, string(key))
		var bytes []byte
		if n != 0 {
			bytes = statestore.AppendValue(nil, 77, binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
		if string(value) != string(bytes) {
			w.t.Fatalf("epoch %d writes %q as %x, want %x", w.number, key, value, bytes)
		}
		w.sending = append(w.sending, statestore.Change{Key: key, Value: value})
		w.copies = append(w.copies, statestore.Change{Key: slices.Clone(key), Value: slices.Clone(value)})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(want) > 0 {
		w.t.Fatalf("epoch %d lacks %v", w.number, want)
	}
	w.sealed = maps.Clone(w.open)
}

// apply is the epoch's commit: the store learns of it, as the sender does it.
func (w *stateWorld) apply() {
	for i := range w.sending {
		if !bytes.Equal(w.sending[i].Key, w.copies[i].Key) || !bytes.Equal(w.sending[i].Value, w.copies[i].Value) {
			w.t.Fatalf("record %q of epoch %d was changed while it was sent", w.copies[i].Key, w.number)
		}
	}
	slices.SortFunc(w.sending, func(a, b statestore.Change) int { return bytes.Compare(a.Key, b.Key) })
	if err := w.handle.Apply(w.sending, statestore.Position{Offset: int64(w.number)}); err != nil {
		w.t.Fatal(err)
	}
	w.state.applied = w.number
	w.stored = maps.Clone(w.sealed)
	w.sending, w.copies = nil, nil
	w.arena.reset()
	w.compareStore()
}

func (w *stateWorld) compareStore() {
	got := rows{}
	err := w.handle.Scan(nil, func(key, value []byte) bool {
		_, name, k, err := statestore.ParseKey(key)
		if err == nil {
			got[[2]string{string(name), string(k)}] = int64(binary.BigEndian.Uint64(value[8:]))
		}
		return err == nil
	})
	if err != nil || !maps.Equal(got, w.stored) {
		w.t.Fatalf("store after epoch %d: %v, %v, want %v", w.number, got, err, w.stored)
	}
}

// TestStateEqualsAPlainMap holds I2 and I3 within a term: whatever messages, failures, evictions, seals and commits come in whatever
// order, a function sees what a map would hold; an epoch writes exactly what has changed; a failed message leaves no trace; and the
// store is a committed prefix. A lost term leaves the store as it was.
func TestStateEqualsAPlainMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		h, err := memory.Open().Acquire(statestore.PartitionID{Stage: "s"})
		if err != nil {
			t.Fatal(err)
		}
		w := &stateWorld{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), handle: h, stored: rows{}}
		w.fresh()
		for range 300 {
			switch n := w.rnd.IntN(20); {
			case n < 14:
				w.slice(40)
			case n < 19:
				if w.sending != nil {
					w.apply()
				}
				w.seal()
			case w.rnd.IntN(10) == 0:
				w.fresh() // the term is lost
				w.compareStore()
			}
		}
		if w.sending != nil {
			w.apply()
		}
		w.seal()
		w.apply()
		if !w.evicted {
			t.Fatalf("seed %d: nothing was ever evicted, the test is too weak", seed)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A row that cannot be read is an error, and what was asked for with it is not taken for absent.
func TestStateOfAnotherSchemaIsAnError(t *testing.T) {
	t.Parallel()
	h, err := memory.Open().Acquire(statestore.PartitionID{Stage: "s"})
	if err != nil {
		t.Fatal(err)
	}
	key := statestore.AppendKey(nil, statestore.KindState, "first", []byte("k"))
	if err := h.Apply([]statestore.Change{{Key: key, Value: statestore.AppendValue(nil, 1234, make([]byte, 8))}}, statestore.Position{}); err != nil {
		t.Fatal(err)
	}
	s := newPartitionState(h, []functions.StateDecl{{Name: "first", Codec: totalCodec{}}}, 1<<20)
	for range 2 {
		if err := s.load([][]byte{[]byte("j"), []byte("k")}); err == nil {
			t.Fatal("a row of schema 1234 was loaded as one of 77")
		}
	}
	if len(s.tables[0].young) != 0 {
		t.Errorf("keys of the failed load stay in memory: %v", s.tables[0].young)
	}
}

// A revoked handle ends the term: nothing of it reads or writes the store any more.
func TestStateOfAnEndedTermIsRevoked(t *testing.T) {
	t.Parallel()
	store := memory.Open()
	id := statestore.PartitionID{Stage: "s"}
	h, err := store.Acquire(id)
	if err != nil {
		t.Fatal(err)
	}
	s := newPartitionState(h, []functions.StateDecl{{Name: "first", Codec: totalCodec{}}}, 1<<20)
	if _, err := store.Acquire(id); err != nil {
		t.Fatal(err)
	}
	if err := s.load([][]byte{[]byte("k")}); !errors.Is(err, statestore.ErrRevoked) {
		t.Errorf("load with the handle of an ended term: %v", err)
	}
}

func TestOversizeStateIsTheMessagesError(t *testing.T) {
	t.Parallel()
	h, err := memory.Open().Acquire(statestore.PartitionID{Stage: "s"})
	if err != nil {
		t.Fatal(err)
	}
	s := newPartitionState(h, []functions.StateDecl{{Name: "first", Codec: totalCodec{}}}, 1<<20)
	if err := s.load([][]byte{[]byte("k")}); err != nil {
		t.Fatal(err)
	}
	s.begin([]byte("k"))
	obj, err := s.Modify(0)
	if err != nil {
		t.Fatal(err)
	}
	obj.(*total).n = 5
	if err := s.oversize(1 << 20); err != nil {
		t.Errorf("8 bytes are too many: %v", err)
	}
	if err := s.oversize(60); err == nil {
		t.Error("8 bytes, their key and overhead fit into 60")
	}
}
