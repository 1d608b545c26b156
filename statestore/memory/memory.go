// Package memory is a statestore.Store in memory, for tests. It keeps the contract of the store on disk, crashes included: what was
// flushed outlives a store, through the Disk it was opened on.
package memory

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kafka-processor/processor/statestore"
)

// Disk is what outlives a store: the state at its last flush. Safe for concurrent use.
type Disk struct {
	mu      sync.Mutex
	flushed map[statestore.PartitionID]contents
	owner   *Store // that has it open, or nil
}

// contents is one partition. It is replaced, never changed, once it is shared with a Disk; values are never changed.
type contents struct {
	rows map[string][]byte
	pos  statestore.Position
	held bool // there is a position
}

// clone copies the rows' table, not the values.
func (c contents) clone() contents {
	c.rows = maps.Clone(c.rows)
	return c
}

// NewDisk returns an empty one.
func NewDisk() *Disk {
	return &Disk{flushed: make(map[statestore.PartitionID]contents)}
}

// Open opens a store with what was flushed. It fails with statestore.ErrLocked while another one is open.
func (d *Disk) Open() (*Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner != nil {
		return nil, fmt.Errorf("open state store in memory: %w", statestore.ErrLocked)
	}
	s := &Store{disk: d, partitions: make(map[statestore.PartitionID]*partition)}
	for id, c := range d.flushed {
		s.partitions[id] = &partition{contents: c.clone()}
	}
	d.owner = s
	return s, nil
}

// Crash loses what the open store has not flushed. That store must not be used any more; closing it has no effect on the Disk.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owner = nil
}

// Store implements statestore.Store.
type Store struct {
	disk *Disk

	mu         sync.Mutex
	partitions map[statestore.PartitionID]*partition
	closed     bool
}

var _ statestore.Store = (*Store)(nil)

// partition is one partition's contents, and where its handles follow each other.
type partition struct {
	terms   sync.Mutex // held while one handle replaces another
	current *handle

	mu sync.RWMutex // guards contents
	contents
}

// Open returns an empty store on a Disk of its own.
func Open() *Store {
	s, err := NewDisk().Open()
	if err != nil {
		panic(err) // a new disk has no owner
	}
	return s
}

// Acquire implements statestore.Store.
func (s *Store) Acquire(id statestore.PartitionID) (statestore.Handle, error) {
	s.mu.Lock()
	p := s.partitions[id]
	if p == nil {
		p = &partition{contents: contents{rows: make(map[string][]byte)}}
		s.partitions[id] = p
	}
	s.mu.Unlock()

	p.terms.Lock()
	defer p.terms.Unlock()
	if p.current != nil {
		p.current.Revoke()
	}
	h := &handle{id: id, p: p}
	p.current = h
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		h.Revoke()
		return nil, fmt.Errorf("acquire %s/%d: %w", id.Stage, id.Partition, statestore.ErrClosed)
	}
	return h, nil
}

// Partitions implements statestore.Store.
func (s *Store) Partitions() ([]statestore.PartitionID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, statestore.ErrClosed
	}
	var found []statestore.PartitionID
	for id, p := range s.partitions {
		p.mu.RLock()
		if p.held {
			found = append(found, id)
		}
		p.mu.RUnlock()
	}
	slices.SortFunc(found, func(a, b statestore.PartitionID) int {
		if c := strings.Compare(a.Stage, b.Stage); c != 0 {
			return c
		}
		return int(a.Partition) - int(b.Partition)
	})
	return found, nil
}

// Size implements statestore.Store: bytes of keys and values.
func (s *Store) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var size int64
	for _, p := range s.partitions {
		p.mu.RLock()
		for key, value := range p.rows {
			size += int64(len(key) + len(value))
		}
		p.mu.RUnlock()
	}
	return size
}

// Flush implements statestore.Store.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return statestore.ErrClosed
	}
	s.flush()
	return nil
}

// flush copies all to the disk, unless it was taken away by a crash.
func (s *Store) flush() {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.owner != s {
		return
	}
	for id, p := range s.partitions {
		p.mu.RLock()
		s.disk.flushed[id] = p.clone()
		p.mu.RUnlock()
	}
}

// Close implements statestore.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	partitions := slices.Collect(maps.Values(s.partitions))
	s.mu.Unlock()
	for _, p := range partitions {
		p.terms.Lock()
		if p.current != nil {
			p.current.Revoke()
		}
		p.terms.Unlock()
	}
	s.flush()
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.owner == s {
		s.disk.owner = nil
	}
	return nil
}

// handle is one term's access. A call holds mu shared, Revoke takes it exclusively after it has set revoked.
type handle struct {
	id      statestore.PartitionID
	p       *partition
	mu      sync.RWMutex
	revoked atomic.Bool
}

// begin starts a call; end it with h.mu.RUnlock if there is no error.
func (h *handle) begin() error {
	// The lock is refused only to calls that come while Revoke waits for it; they need not wait with it.
	if !h.mu.TryRLock() {
		return h.ended()
	}
	if h.revoked.Load() {
		h.mu.RUnlock()
		return h.ended()
	}
	return nil
}

// ended is the error of a revoked handle.
func (h *handle) ended() error {
	return fmt.Errorf("state of %s/%d: %w", h.id.Stage, h.id.Partition, statestore.ErrRevoked)
}

// Position implements statestore.Handle.
func (h *handle) Position() (statestore.Position, bool, error) {
	if err := h.begin(); err != nil {
		return statestore.Position{}, false, err
	}
	defer h.mu.RUnlock()
	h.p.mu.RLock()
	defer h.p.mu.RUnlock()
	return h.p.pos, h.p.held, nil
}

// Get implements statestore.Handle.
func (h *handle) Get(keys [][]byte, found func(i int, value []byte) error) error {
	if err := h.begin(); err != nil {
		return err
	}
	defer h.mu.RUnlock()
	values := make([][]byte, len(keys))
	h.p.mu.RLock()
	for i, key := range keys {
		values[i] = h.p.rows[string(key)]
	}
	h.p.mu.RUnlock()
	for i, value := range values {
		if h.revoked.Load() {
			return h.ended()
		}
		if value == nil {
			continue
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
		return err
	}
	defer h.mu.RUnlock()
	h.p.mu.RLock()
	rows := make(map[string][]byte)
	for key, value := range h.p.rows {
		if strings.HasPrefix(key, string(prefix)) {
			rows[key] = value
		}
	}
	h.p.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if h.revoked.Load() {
			return h.ended()
		}
		if !each([]byte(key), rows[key]) {
			return nil
		}
	}
	return nil
}

// Apply implements statestore.Handle.
func (h *handle) Apply(changes []statestore.Change, pos statestore.Position) error {
	if err := h.begin(); err != nil {
		return err
	}
	defer h.mu.RUnlock()
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	for _, c := range changes {
		if len(c.Value) == 0 {
			delete(h.p.rows, string(c.Key))
		} else {
			h.p.rows[string(c.Key)] = bytes.Clone(c.Value)
		}
	}
	h.p.pos, h.p.held = pos, true
	return nil
}

// Clear implements statestore.Handle.
func (h *handle) Clear() error {
	if err := h.begin(); err != nil {
		return err
	}
	defer h.mu.RUnlock()
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	h.p.contents = contents{rows: make(map[string][]byte)}
	return nil
}

// Revoke implements statestore.Handle.
func (h *handle) Revoke() {
	h.revoked.Store(true)
	h.mu.Lock()
	//lint:ignore SA2001 to have had the lock is to know that no call is under way
	h.mu.Unlock()
}
