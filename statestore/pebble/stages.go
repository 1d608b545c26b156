package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kafka-processor/processor/statestore"
)

// stages gives each stage a number, which its keys begin with instead of its name. A number is never given twice.
// Guarded by Store.mu.
type stages struct {
	numbers map[string]uint16
	last    uint16
}

// loadStages reads what was given so far.
func loadStages(db *pebble.DB) (*stages, error) {
	s := &stages{numbers: make(map[string]uint16)}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: stagePrefix, UpperBound: stageEnd})
	if err != nil {
		return nil, readError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			break // Close returns it
		}
		if len(value) != 2 {
			_ = it.Close()
			return nil, fmt.Errorf("%w: stage number of %d bytes", statestore.ErrCorrupt, len(value))
		}
		number := binary.BigEndian.Uint16(value)
		s.numbers[string(it.Key()[len(stagePrefix):])] = number
		s.last = max(s.last, number)
	}
	if err := it.Close(); err != nil {
		return nil, readError(err)
	}
	return s, nil
}

// number returns the stage's number, and gives it one if it has none.
func (s *stages) number(db *pebble.DB, stage string) (uint16, error) {
	if n, ok := s.numbers[stage]; ok {
		return n, nil
	}
	if s.last == maxStages {
		return 0, fmt.Errorf("%d stages were used in this folder, more than it can number: delete it and restore", maxStages)
	}
	n := s.last + 1
	key := append(append([]byte(nil), stagePrefix...), stage...)
	if err := db.Set(key, binary.BigEndian.AppendUint16(nil, n), pebble.NoSync); err != nil {
		return 0, fmt.Errorf("number stage %q: %w", stage, err)
	}
	s.numbers[stage], s.last = n, n
	return n, nil
}

// Partitions implements statestore.Store: those with a position, in the order of stage numbers and partitions.
func (s *Store) Partitions() ([]statestore.PartitionID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, statestore.ErrClosed
	}
	if err := s.failure.err(); err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	found, err := s.listPartitions()
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", readError(err))
	}
	return found, nil
}

// listPartitions skips from one partition to the next.
func (s *Store) listPartitions() ([]statestore.PartitionID, error) {
	names := s.stages.names()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{0, 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var found []statestore.PartitionID
	for ok := it.First(); ok; {
		key := it.Key()
		number := binary.BigEndian.Uint16(key)
		name, known := names[number]
		if !known || len(key) < rowHeadBytes {
			return nil, fmt.Errorf("%w: a row of stage number %d, which was never given", statestore.ErrCorrupt, number)
		}
		if key[partitionBytes] == tagPosition {
			found = append(found, statestore.PartitionID{Stage: name, Partition: int32(binary.BigEndian.Uint32(key[2:]))})
		}
		next := successor(key[:partitionBytes])
		if next == nil {
			break
		}
		ok = it.SeekGE(next)
	}
	return found, it.Error()
}

// names is the reverse of numbers.
func (s *stages) names() map[uint16]string {
	names := make(map[uint16]string, len(s.numbers))
	for name, number := range s.numbers {
		names[number] = name
	}
	return names
}
