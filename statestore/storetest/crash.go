package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kafka-processor/processor/statestore"
)

// Model is a changelog of one partition: replaying it up to an offset is what a store at that offset must equal (I3).
type Model struct {
	records []record
}

// record is a change, or a clear.
type record struct {
	statestore.Change
	clear bool
}

// Batch appends n random changes to few keys, so that rows are replaced and deleted, and returns them as Apply wants them and the
// offset after them. Only the last change of a key is in the batch, as in an epoch.
func (m *Model) Batch(rng *rand.Rand, n int) ([]statestore.Change, int64) {
	last := make(map[string][]byte)
	for range n {
		key := fmt.Sprintf("key-%03d", rng.IntN(300))
		var value []byte
		if rng.IntN(4) > 0 {
			value = bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, 1+rng.IntN(200))
		}
		last[key] = value
	}
	var batch []statestore.Change
	for _, key := range slices.Sorted(maps.Keys(last)) {
		batch = append(batch, statestore.Change{Key: []byte(key), Value: last[key]})
		m.records = append(m.records, record{Change: batch[len(batch)-1]})
	}
	return batch, m.End()
}

// Clear notes that the store was cleared. It takes an offset, so that a position tells whether a state is from before or after it.
func (m *Model) Clear() {
	m.records = append(m.records, record{clear: true})
}

// End is the offset after the last record.
func (m *Model) End() int64 { return int64(len(m.records)) }

// clearedSince tells whether a clear follows the offset. A crash right after it leaves nothing, which is a prefix too.
func (m *Model) clearedSince(offset int64) bool {
	return slices.ContainsFunc(m.records[offset:], func(r record) bool { return r.clear })
}

// Replay is the state at an offset.
func (m *Model) Replay(offset int64) map[string]string {
	state := make(map[string]string)
	for _, r := range m.records[:offset] {
		switch {
		case r.clear:
			clear(state)
		case len(r.Value) == 0:
			delete(state, string(r.Key))
		default:
			state[string(r.Key)] = string(r.Value)
		}
	}
	return state
}

// Check compares a partition with the model at the position it records, and returns that; 0 if there is none, which must then be
// empty.
func (m *Model) Check(h statestore.Handle) (int64, error) {
	pos, ok, err := h.Position()
	if err != nil {
		return 0, err
	}
	if ok && (pos.Offset < 0 || pos.Offset > m.End()) {
		return 0, fmt.Errorf("position %d was never applied, the model ends at %d", pos.Offset, m.End())
	}
	want := m.Replay(pos.Offset)
	if !ok {
		want = nil
	}
	got := make(map[string]string)
	err = h.Scan(nil, func(key, value []byte) bool {
		got[string(key)] = string(value)
		return true
	})
	if err != nil {
		return 0, err
	}
	if !maps.Equal(got, want) {
		return 0, fmt.Errorf("at position %d there are %d rows, which differ from the %d of the changelog's replay", pos.Offset, len(got), len(want))
	}
	return pos.Offset, nil
}

// crashSeed makes the runs of crashLeavesPrefix; print it in a failure to run the same again.
const crashSeed = 20240607

// crashLeavesPrefix applies random batches to several partitions and crashes at random moments, again and again on the same ground.
// After each crash every partition must be a prefix of its own changelog, at least the one of the last flush; the tail is replayed
// and it goes on.
func crashLeavesPrefix(t *testing.T, o Opener) {
	rng := rand.New(rand.NewPCG(crashSeed, 0))
	ids := []statestore.PartitionID{first, second, third}
	models := make([]Model, len(ids))
	durable := make([]int64, len(ids))
	for round := range 8 {
		s := open(t, o)
		handles := make([]statestore.Handle, len(ids))
		for i, id := range ids {
			handles[i] = acquire(t, s, id)
			at, err := models[i].Check(handles[i])
			if err != nil {
				t.Fatalf("seed %d, round %d, %v: %v", crashSeed, round, id, err)
			}
			if at < durable[i] && !(at == 0 && models[i].clearedSince(durable[i])) {
				t.Fatalf("seed %d, round %d, %v: at %d, but %d was flushed", crashSeed, round, id, at, durable[i])
			}
			replayTail(t, &models[i], handles[i], at)
		}
		steps := 40 + rng.IntN(60)
		for range steps {
			i := rng.IntN(len(ids))
			step(t, rng, &models[i], handles[i])
			if rng.IntN(30) == 0 {
				must(t, s.Flush())
				for j := range models {
					durable[j] = models[j].End()
				}
			}
		}
		must(t, o.Crash())
		must(t, s.Close())
	}
}

// step applies one batch, or clears and then applies one. A clear without anything after it would leave no position to check by.
func step(t *testing.T, rng *rand.Rand, m *Model, h statestore.Handle) {
	t.Helper()
	if rng.IntN(25) == 0 {
		must(t, h.Clear())
		m.Clear()
	}
	batch, end := m.Batch(rng, rng.IntN(120))
	must(t, h.Apply(batch, position(end)))
}

// replayTail does what restore does: applies the records from an offset on, in batches.
func replayTail(t *testing.T, m *Model, h statestore.Handle, from int64) {
	t.Helper()
	for at := from; at < m.End(); at++ {
		r := m.records[at]
		if r.clear {
			must(t, h.Clear())
			continue
		}
		must(t, h.Apply([]statestore.Change{r.Change}, position(at+1)))
	}
}
