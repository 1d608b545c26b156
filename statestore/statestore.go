// Package statestore is the contract of a worker's local store of state, and what every implementation shares.
//
// The store is a cache of changelog partitions. It learns of epochs only after their commit, so each of its partitions is always
// a committed prefix: equal to the changelog replayed up to the offset that it records (I3). It has no write-ahead log, the
// changelog is one; after a crash it is an older prefix, and restore replays the tail.
package statestore

import "errors"

// PartitionID names one partition of one stage's state. Stage is unique within the store's folder.
type PartitionID struct {
	Stage     string
	Partition int32
}

// Position is how far a partition is.
type Position struct {
	Topic       [16]byte // Kafka's topic id of the changelog
	Incarnation uint64   // of the pipeline
	Offset      int64    // the next changelog offset that is not yet in the store
	AtEnd       int64    // Unix milliseconds when the store was last known to be at the end of the changelog
}

// Change sets a row, or deletes it when Value is empty.
type Change struct {
	Key   []byte
	Value []byte
}

var (
	// ErrRevoked is what a handle of an ended term answers.
	ErrRevoked = errors.New("state handle belongs to an ended term")
	// ErrClosed is what a closed store answers.
	ErrClosed = errors.New("state store is closed")
	// ErrLocked means that another store, of this process or of another one, has the folder open.
	ErrLocked = errors.New("state store's folder is in use")
	// ErrCorrupt means that what is on disk cannot be read: damaged, incomplete, or of an unknown format. The store is a cache, so
	// the way out is to delete the folder and restore from the changelog.
	ErrCorrupt = errors.New("state store is corrupt")
	// ErrFailed means that the store could not write (disk full, I/O error) and answers nothing more. The cause is wrapped too.
	// Closing and opening it again gives the prefix that it had flushed.
	ErrFailed = errors.New("state store failed")
	// ErrFull means that the store has reached the disk space that it was given.
	ErrFull = errors.New("state store has used up its disk space")
)

// Store is one worker's local state. Safe for concurrent use.
type Store interface {
	// Acquire returns the handle of one term and revokes all earlier ones of this partition: when it returns, no call on those is
	// under way and each later one fails with ErrRevoked.
	Acquire(p PartitionID) (Handle, error)
	// Partitions lists what the store holds.
	Partitions() ([]PartitionID, error)
	// Size is the number of bytes on disk (or in memory).
	Size() int64
	// Flush makes all that was applied survive a crash of the process.
	Flush() error
	Close() error
}

// Handle is one term's access to one partition. Apply and Clear come from one goroutine, Get and Scan from one other; Position and
// Revoke from any. The functions passed to Get and Scan must not revoke their own handle, by Revoke, Acquire or Close: that would
// wait for itself.
type Handle interface {
	// Position tells how far the partition is; ok is false if the store has nothing of it.
	Position() (pos Position, ok bool, err error)
	// Get looks up keys, which are sorted and distinct, and calls found with the index of each that exists, in order. value is
	// valid only during the call. An error of found ends the call and is returned as it is.
	Get(keys [][]byte, found func(i int, value []byte) error) error
	// Scan calls each with all rows whose key begins with prefix, in order, until it returns false. key and value are valid only
	// during the call.
	Scan(prefix []byte, each func(key, value []byte) bool) error
	// Apply makes the changes and the position visible in one step. changes are sorted by key, each key once; none is allowed,
	// and moves the position alone. The store keeps no reference to them. After an error the handle must be given up: whether the
	// changes were applied is not known.
	Apply(changes []Change, pos Position) error
	// Clear removes all rows and the position.
	Clear() error
	// Revoke ends the handle: when it returns, no call is under way and each later one fails with ErrRevoked.
	Revoke()
}
