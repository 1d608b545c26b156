package processor

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/statestore"
)

// entryOverhead is what an entry costs in memory beside its key and object, in bytes.
const entryOverhead = 160

// entry is the newest value of one state row: what the open epoch has made of it, else what the epoch being sent has, else what
// the store has. It is never dropped while the store lacks something of it, so it is cache and overlay in one.
type entry struct {
	key     string // of the group
	obj     any    // decoded; nil: there is no row
	stored  []byte // encoding of the row as of the last seal or load; nil: none
	weight  int
	dirty   bool   // changed in the open epoch
	pinned  uint64 // epoch that carried its last change; it may be dropped once that epoch is in the store
	message uint64 // number of the message that has undo information for it
}

// table is one named state of one stage partition.
type table struct {
	decl  functions.StateDecl
	print uint64            // of the codec
	young map[string]*entry // used since the last turn
	old   map[string]*entry // used before it, dropped at the next turn unless used again
	dirty []*entry
}

// change of a message, for undo.
type change struct {
	table *table
	entry *entry
	was   any // copy of the object, or nil
	kept  any // scratch that later copies may reuse
	dirty bool
}

// partitionState is the state of one stage partition in one term. It belongs to the job's goroutine.
type partitionState struct {
	handle  statestore.Handle
	tables  []*table
	applied uint64 // newest epoch that is in the store
	weight  int    // of young
	limit   int    // young may weigh half of it
	floor   int    // what the last turn had to keep

	current []*entry // of the message being processed, by table
	undo    []change
	undos   int
	message uint64
}

func newPartitionState(h statestore.Handle, decls []functions.StateDecl, limit int) *partitionState {
	s := &partitionState{handle: h, limit: limit, current: make([]*entry, len(decls))}
	for _, d := range decls {
		s.tables = append(s.tables, &table{decl: d, print: d.Codec.Fingerprint(), young: map[string]*entry{}, old: map[string]*entry{}})
	}
	return s
}

// load makes the entries of a batch's keys available, with one sorted look-up in the store for those that are not in memory.
// keys may repeat; a nil key is left out.
func (s *partitionState) load(keys [][]byte) error {
	for _, t := range s.tables {
		if err := s.loadTable(t, keys); err != nil {
			return err
		}
	}
	return nil
}

func (s *partitionState) loadTable(t *table, keys [][]byte) error {
	var missing []*entry
	for _, k := range keys {
		if k == nil || s.find(t, k) != nil {
			continue
		}
		e := &entry{key: string(k)}
		e.weight = len(k) + entryOverhead
		t.young[e.key] = e
		missing = append(missing, e)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b *entry) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	rows := make([][]byte, len(missing))
	var arena []byte
	for i, e := range missing {
		from := len(arena)
		arena = statestore.AppendKey(arena, statestore.KindState, t.decl.Name, []byte(e.key))
		rows[i] = arena[from:len(arena):len(arena)]
	}
	err := s.handle.Get(rows, func(i int, value []byte) error { return t.fill(missing[i], value) })
	if err != nil {
		for _, e := range missing {
			delete(t.young, e.key)
		}
		return fmt.Errorf("load state %s: %w", t.decl.Name, err)
	}
	for _, e := range missing {
		s.weight += e.weight
	}
	return nil
}

// errRow marks a row that the store holds well and the function's codec cannot read: trouble of its partition, not of the store.
var errRow = errors.New("unreadable row")

func (t *table) fill(e *entry, value []byte) error {
	print, payload, err := statestore.ParseValue(value)
	if err != nil {
		return fmt.Errorf("%w of key %q: %w", errRow, e.key, err)
	}
	if print != t.print {
		return fmt.Errorf("%w: that of key %q was written with schema %016x, the function's is %016x", errRow, e.key, print, t.print)
	}
	if e.obj, err = t.decl.Codec.Decode(payload); err != nil {
		return fmt.Errorf("%w of key %q: %w", errRow, e.key, err)
	}
	e.stored = bytes.Clone(payload)
	e.weight = len(e.key) + entryOverhead + len(payload) + t.decl.Codec.Weight(e.obj)
	return nil
}

// find returns the entry of a key in memory, or nil, and keeps it young.
func (s *partitionState) find(t *table, key []byte) *entry {
	if e := t.young[string(key)]; e != nil {
		return e
	}
	e := t.old[string(key)]
	if e == nil {
		return nil
	}
	delete(t.old, e.key)
	t.young[e.key] = e
	s.weight += e.weight
	return e
}

// begin makes key the one that States answers for. It must have been loaded.
func (s *partitionState) begin(key []byte) {
	s.message++
	s.undos = 0
	for i, t := range s.tables {
		s.current[i] = s.find(t, key)
	}
}

// rollback undoes the changes of the current message.
func (s *partitionState) rollback() {
	for i := s.undos - 1; i >= 0; i-- {
		c := &s.undo[i]
		c.entry.obj = c.was
		c.entry.message = 0
		if c.entry.dirty && !c.dirty {
			c.entry.dirty = false
			c.table.dirty = c.table.dirty[:len(c.table.dirty)-1]
		}
		c.was, c.kept = nil, nil // the copy is the object now
	}
	s.undos = 0
}

// Get is functions.States'.
func (s *partitionState) Get(i int) (any, error) { return s.current[i].obj, nil }

// Modify is functions.States'.
func (s *partitionState) Modify(i int) (any, error) {
	e := s.remember(i)
	if e.obj == nil {
		e.obj = s.tables[i].decl.Codec.New()
	}
	return e.obj, nil
}

// Delete is functions.States'.
func (s *partitionState) Delete(i int) { s.remember(i).obj = nil }

// remember keeps what the current entry was before this message and marks it as changed.
func (s *partitionState) remember(i int) *entry {
	t, e := s.tables[i], s.current[i]
	if e.message == s.message {
		return e
	}
	e.message = s.message
	if s.undos == len(s.undo) {
		s.undo = append(s.undo, change{})
	}
	c := &s.undo[s.undos]
	s.undos++
	if c.table != t {
		c.kept = nil
	}
	c.table, c.entry, c.dirty, c.was = t, e, e.dirty, nil
	if e.obj != nil {
		c.kept = t.decl.Codec.Copy(c.kept, e.obj)
		c.was = c.kept
	}
	if !e.dirty {
		e.dirty = true
		t.dirty = append(t.dirty, e)
	}
	return e
}

// oversize tells whether an object that the current message changed would be larger than limit bytes in the changelog.
func (s *partitionState) oversize(limit int) error {
	for i := range s.undos {
		c := &s.undo[i]
		if c.entry.obj == nil || c.table.decl.Codec.Weight(c.entry.obj) < limit/4 {
			continue
		}
		b, err := c.table.decl.Codec.Append(nil, c.entry.obj)
		if err != nil {
			return fmt.Errorf("encode state %s: %w", c.table.decl.Name, err)
		}
		if len(b)+len(c.entry.key)+64 > limit {
			return fmt.Errorf("state %s of this key would take %d bytes, the changelog takes records of %d", c.table.decl.Name, len(b), limit)
		}
	}
	return nil
}

// seal encodes what the open epoch changed and hands each row over; a value that encodes to the bytes that are there already is
// not written. Afterwards the next epoch is open.
func (s *partitionState) seal(number uint64, arena *arena, each func(key, value []byte)) error {
	for _, t := range s.tables {
		for _, e := range t.dirty {
			e.dirty = false
			payload := e.stored[:0:0]
			value := arena.begin()
			if e.obj != nil {
				value = statestore.AppendValue(value, t.print, nil)
				head := len(value)
				var err error
				if value, err = t.decl.Codec.Append(value, e.obj); err != nil {
					return fmt.Errorf("encode state %s of key %q: %w", t.decl.Name, e.key, err)
				}
				if payload = value[head:]; len(payload) == 0 {
					value, e.obj = value[:0], nil
				}
			}
			if (e.obj == nil) == (e.stored == nil) && bytes.Equal(payload, e.stored) {
				continue
			}
			value = arena.end(value)
			key := arena.end(statestore.AppendKey(arena.begin(), statestore.KindState, t.decl.Name, []byte(e.key)))
			each(key, value)
			s.stored(t, e, payload)
			e.pinned = number
		}
		t.dirty = t.dirty[:0]
	}
	return nil
}

func (s *partitionState) stored(t *table, e *entry, payload []byte) {
	if e.obj == nil {
		e.stored = nil
	} else {
		e.stored = append(e.stored[:0], payload...)
	}
	w := len(e.key) + entryOverhead + cap(e.stored)
	if e.obj != nil {
		w += t.decl.Codec.Weight(e.obj)
	}
	s.weight += w - e.weight
	e.weight = w
}

// turn drops what has not been used for long, once the young entries weigh too much. Rows that the store lacks stay.
func (s *partitionState) turn() {
	// What has to stay may alone weigh more than the limit: then wait until it has doubled, or every turn would walk it in vain.
	if s.weight < max(s.limit/2, 2*s.floor) {
		return
	}
	s.weight = 0
	for _, t := range s.tables {
		keep := make(map[string]*entry, len(t.young)/8)
		for _, m := range []map[string]*entry{t.old, t.young} {
			for k, e := range m {
				if e.dirty || e.pinned > s.applied {
					keep[k] = e
					s.weight += e.weight
				}
			}
		}
		t.old = t.young
		for k := range keep {
			delete(t.old, k)
		}
		t.young = keep
	}
	s.floor = s.weight
}
