// Package pebblestore keeps a worker's state in a Pebble database, an LSM tree in local files.
//
// One invariant carries the package: after a crash each partition is a prefix of the batches applied to it. It needs no write-ahead
// log; see Store.
//
//	store.go     opening, closing, terms, the flush timer
//	handle.go    reads and writes of one term
//	pressure.go  makes writers wait for flushes, in a way that a failure or a revocation ends
//	stages.go    numbers of stages
//	layout.go    keys and values in the database
//	database.go  how the database is set up, and what its errors at opening mean
//	failure.go   what the database reports in the background
//	fence.go     no writes after a failure
package pebblestore

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kafka-processor/processor/statestore"
)

// Store is a statestore.Store in one folder.
//
// It has no write-ahead log. That a crash still leaves each partition at a prefix of its applied batches follows from:
//
//  1. A batch holds the changes and the position after them, and lies in one memtable: the database reserves room for all of a batch
//     or starts another memtable (or makes the batch a memtable of its own when it is very large).
//  2. Batches of one partition come from one goroutine, so they get rising sequence numbers in the order of Apply. Memtables divide
//     sequence numbers into consecutive ranges.
//  3. Memtables are flushed oldest first. The tables of one flush, of one memtable or several neighbours, become part of the database
//     by one edit of the manifest, written after the tables are synced. Opening reads the manifest up to its last whole edit.
//  4. Compaction only replaces tables by others with the same content, again by one edit. Tables are removed after that.
//  5. After a failed write the fence lets no later one through, so that no edit can follow a lost one.
//
// So what survives is all batches up to some sequence number, over all partitions. Numbers of stages are rows of the same kind,
// written before the first row that uses them, and survive if any of those does.
//
// Locks: Store.mu for stages, slots and being closed, held for moments and within slot.mu; slot.mu for the succession of terms;
// handle.mu, shared by calls and exclusive for revocation, within slot.mu. No lock is taken per key.
type Store struct {
	db       *pebble.DB
	lock     *pebble.Lock
	cache    *pebble.Cache
	opts     Options
	failure  *failure
	progress *progress
	pressure *pressure

	mu     sync.Mutex
	stages *stages
	slots  map[statestore.PartitionID]*slot
	closed bool

	stop    chan struct{} // closed by Close; ends the flush timer
	stopped chan struct{} // closed by the flush timer at its end
}

// slot is where the handles of one partition follow each other.
type slot struct {
	mu      sync.Mutex
	current *handle // nil before the first Acquire
}

var _ statestore.Store = (*Store)(nil)

// Open opens the store in dir, which is made if it does not exist. It fails with statestore.ErrLocked if another store has it open,
// with statestore.ErrCorrupt if what is there is damaged or of an unknown format, and with the file system's error otherwise.
func Open(dir string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("options of the state store in %s: %w", dir, err)
	}
	s := &Store{
		opts:     opts,
		failure:  newFailure(opts.Logger),
		progress: newProgress(),
		slots:    make(map[statestore.PartitionID]*slot),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	if err := s.openDatabase(dir); err != nil {
		return nil, fmt.Errorf("open state store in %s: %w", dir, err)
	}
	s.pressure = newPressure(s)
	go s.flushOnTimer()
	return s, nil
}

// flushOnTimer bounds how much a crash loses. A memtable that is empty is not flushed by the database.
func (s *Store) flushOnTimer() {
	defer close(s.stopped)
	ticker := time.NewTicker(s.opts.FlushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.failure.failed:
			return
		case <-ticker.C:
		}
		if !s.pressure.unflushed.Swap(false) {
			continue
		}
		if _, err := s.db.AsyncFlush(); err != nil {
			s.failure.set(fmt.Errorf("flush on timer: %w", err))
		}
	}
}

// Acquire implements statestore.Store.
func (s *Store) Acquire(p statestore.PartitionID) (statestore.Handle, error) {
	slot, number, err := s.slot(p)
	if err != nil {
		return nil, fmt.Errorf("acquire %s/%d: %w", p.Stage, p.Partition, err)
	}
	// Under the slot's lock two Acquires follow each other, so that the second returns only after the handle that the first one is
	// still waiting for has ended as well. It is not the store's lock, since a long scan elsewhere must not stop all partitions.
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.current != nil {
		slot.current.Revoke()
	}
	h := newHandle(s, p, number)
	slot.current = h
	if s.isClosed() {
		// Close may have looked at the slot before this handle was in it.
		h.Revoke()
		return nil, fmt.Errorf("acquire %s/%d: %w", p.Stage, p.Partition, statestore.ErrClosed)
	}
	return h, nil
}

// slot finds or makes the partition's slot and the stage's number.
func (s *Store) slot(p statestore.PartitionID) (*slot, uint16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, statestore.ErrClosed
	}
	if err := s.failure.err(); err != nil {
		return nil, 0, err
	}
	number, err := s.stages.number(s.db, p.Stage)
	if err != nil {
		return nil, 0, err
	}
	found := s.slots[p]
	if found == nil {
		found = &slot{}
		s.slots[p] = found
	}
	return found, number, nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Size implements statestore.Store: bytes on disk.
func (s *Store) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	return int64(s.db.Metrics().DiskSpaceUsage())
}

// Flush implements statestore.Store. It also survives a loss of power.
func (s *Store) Flush() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return statestore.ErrClosed
	}
	flushed, err := s.db.AsyncFlush()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("flush state store: %w", err)
	}
	return s.awaitFlush(flushed)
}

// awaitFlush does not wait for the database alone, which retries a failed flush for ever.
func (s *Store) awaitFlush(flushed <-chan struct{}) error {
	select {
	case <-flushed:
		return nil
	case <-s.failure.failed:
		return fmt.Errorf("flush state store: %w", s.failure.err())
	}
}

// Close revokes all handles, flushes and closes the database. After a failure it closes without a flush and returns the failure. A
// second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	slots := make([]*slot, 0, len(s.slots))
	for _, slot := range s.slots {
		slots = append(slots, slot)
	}
	s.mu.Unlock()

	for _, slot := range slots {
		slot.mu.Lock()
		if slot.current != nil {
			slot.current.Revoke()
		}
		slot.mu.Unlock()
	}
	close(s.stop)
	<-s.stopped
	err := s.failure.err()
	if err == nil {
		var flushed <-chan struct{}
		if flushed, err = s.db.AsyncFlush(); err == nil {
			err = s.awaitFlush(flushed)
		}
	}
	return errors.Join(err, s.closeDatabase())
}
