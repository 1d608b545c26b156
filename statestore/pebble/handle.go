package pebblestore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kafka-processor/processor/statestore"
)

// handle is one term's access to one partition. A call holds mu shared; Revoke sets revoked, so that long calls end early, and then
// takes mu exclusively, which waits for them.
type handle struct {
	s         *Store
	partition statestore.PartitionID
	prefix    [partitionBytes]byte

	mu       sync.RWMutex
	revoked  atomic.Bool
	revoking chan struct{} // closed by the first Revoke, to wake a writer that waits for room

	readKey []byte // Get's and Scan's, which come from one goroutine
}

func newHandle(s *Store, p statestore.PartitionID, stage uint16) *handle {
	return &handle{s: s, partition: p, prefix: partitionPrefix(stage, p.Partition), revoking: make(chan struct{})}
}

// begin starts a call; end it with h.mu.RUnlock if there is no error.
func (h *handle) begin() error {
	// The lock is refused only to calls that come while Revoke waits for it; they need not wait with it.
	if !h.mu.TryRLock() {
		return statestore.ErrRevoked
	}
	err := h.s.failure.err()
	if h.revoked.Load() {
		err = statestore.ErrRevoked
	}
	if err != nil {
		h.mu.RUnlock()
	}
	return err
}

// wrap says what failed where.
func (h *handle) wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s in state of %s/%d: %w", operation, h.partition.Stage, h.partition.Partition, err)
}

// key is the partition's prefix, the tag and rest, in dst's memory.
func (h *handle) key(dst []byte, tag byte, rest []byte) []byte {
	dst = append(dst[:0], h.prefix[:]...)
	dst = append(dst, tag)
	return append(dst, rest...)
}

// Position implements statestore.Handle.
func (h *handle) Position() (pos statestore.Position, ok bool, err error) {
	if err := h.begin(); err != nil {
		return pos, false, h.wrap("read position", err)
	}
	defer h.mu.RUnlock()
	value, closer, err := h.s.db.Get(h.key(nil, tagPosition, nil))
	if errors.Is(err, pebble.ErrNotFound) {
		return pos, false, nil
	}
	if err != nil {
		return pos, false, h.wrap("read position", readError(err))
	}
	defer closer.Close()
	pos, err = parsePosition(value)
	return pos, err == nil, h.wrap("read position", err)
}

// Get implements statestore.Handle.
//
// One iterator serves the batch: keys are sorted, so each seek starts from the last one's place. SeekPrefixGE asks the Bloom filters,
// since the whole key is its own prefix, and UseL6Filters those of the lowest level too, which the database's own Get leaves out: there
// are most keys, and a key that does not exist would cost a read of a block.
func (h *handle) Get(keys [][]byte, found func(i int, value []byte) error) error {
	if err := h.begin(); err != nil {
		return h.wrap("get", err)
	}
	defer h.mu.RUnlock()
	if len(keys) == 0 {
		return nil
	}
	it, err := h.s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return h.wrap("get", readError(err))
	}
	defer it.Close()
	for i, key := range keys {
		if h.revoked.Load() {
			return h.wrap("get", statestore.ErrRevoked)
		}
		h.readKey = h.key(h.readKey, tagRow, key)
		if !it.SeekPrefixGE(h.readKey) {
			if err := it.Error(); err != nil {
				return h.wrap("get", readError(err))
			}
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return h.wrap("get", readError(err))
		}
		if err := found(i, value); err != nil {
			return err
		}
	}
	return nil
}

// Scan implements statestore.Handle.
func (h *handle) Scan(prefix []byte, each func(key, value []byte) bool) error {
	if err := h.begin(); err != nil {
		return h.wrap("scan", err)
	}
	defer h.mu.RUnlock()
	lower := h.key(nil, tagRow, prefix)
	it, err := h.s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: successor(lower)})
	if err != nil {
		return h.wrap("scan", readError(err))
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if h.revoked.Load() {
			return h.wrap("scan", statestore.ErrRevoked)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return h.wrap("scan", readError(err))
		}
		if !each(it.Key()[rowHeadBytes:], value) {
			return nil
		}
	}
	return h.wrap("scan", readError(it.Error()))
}

// Apply implements statestore.Handle.
func (h *handle) Apply(changes []statestore.Change, pos statestore.Position) error {
	if err := h.begin(); err != nil {
		return h.wrap("apply", err)
	}
	defer h.mu.RUnlock()
	size := batchBytes(changes)
	if err := h.s.pressure.admit(h, size); err != nil {
		return h.wrap("apply", err)
	}
	batch := h.s.db.NewBatchWithSize(size)
	defer batch.Close()
	op := batch.SetDeferred(rowHeadBytes, positionBytes)
	h.key(op.Key, tagPosition, nil)
	putPosition(op.Value, pos)
	err := op.Finish()
	for i := range changes {
		if err != nil {
			break
		}
		c := &changes[i]
		if len(c.Value) == 0 {
			op = batch.DeleteDeferred(rowHeadBytes + len(c.Key))
		} else {
			op = batch.SetDeferred(rowHeadBytes+len(c.Key), len(c.Value))
			copy(op.Value, c.Value)
		}
		h.key(op.Key, tagRow, c.Key)
		err = op.Finish()
	}
	if err != nil {
		return h.wrap("apply", err)
	}
	return h.wrap("apply", h.commit(batch))
}

// batchBytes bounds the size of a batch, so that it is allocated once: a head, and for each entry its kind and two lengths.
func batchBytes(changes []statestore.Change) int {
	const head, entry = 12, 1 + 2*5
	size := head + entry + rowHeadBytes + positionBytes
	for i := range changes {
		size += entry + rowHeadBytes + len(changes[i].Key) + len(changes[i].Value)
	}
	return size
}

// commit makes a batch visible. The database reports some failed commits by its log only, hence the second look.
func (h *handle) commit(batch *pebble.Batch) error {
	if err := batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	h.s.pressure.unflushed.Store(true)
	return h.s.failure.err()
}

// Clear implements statestore.Handle.
func (h *handle) Clear() error {
	if err := h.begin(); err != nil {
		return h.wrap("clear", err)
	}
	defer h.mu.RUnlock()
	batch := h.s.db.NewBatch()
	defer batch.Close()
	// There is a successor, since a partition's number is not negative and so its first bit not set.
	if err := batch.DeleteRange(h.prefix[:], successor(h.prefix[:]), nil); err != nil {
		return h.wrap("clear", err)
	}
	return h.wrap("clear", h.commit(batch))
}

// Revoke implements statestore.Handle.
func (h *handle) Revoke() {
	if h.revoked.CompareAndSwap(false, true) {
		close(h.revoking)
	}
	h.mu.Lock()
	//lint:ignore SA2001 to have had the lock is to know that no call is under way
	h.mu.Unlock()
}
