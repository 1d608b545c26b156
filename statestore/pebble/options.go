package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options sets how much memory, disk and time the store uses. The zero value of a field means its default.
//
// Peak memory is about BlockCacheBytes + MemtableBytes * MaxMemtables + 20 MiB for tables being written, outside of what Go's
// memory limit sees when the program is built with cgo.
type Options struct {
	// BlockCacheBytes is for blocks of tables, filters among them. Default 128 MiB, 8 MiB to 64 GiB. Memtables have their own
	// space on top. When the filters do not fit, each read of a key reads filters from disk again: about 1.5 bytes a key.
	BlockCacheBytes int64
	// MemtableBytes is the size of one memtable. Default 16 MiB, 256 KiB to 1 GiB. Larger ones make fewer, larger tables.
	MemtableBytes int64
	// MaxMemtables is how many memtables may exist, the one being filled included, before Apply waits for a flush. Default 3, 2 to 16.
	MaxMemtables int
	// FlushInterval is how long an applied change may stay in memory only; a crash costs the replay of what was applied since.
	// Default 5 s, 10 ms to 1 h.
	FlushInterval time.Duration
	// MaxDiskBytes is the disk space after which Apply fails with statestore.ErrFull. Checked once a quarter of a memtable, so it
	// is passed by up to two memtables and what compaction needs. Default 0, which is no bound.
	MaxDiskBytes int64
	// Logger takes what the database reports. Default none.
	Logger *slog.Logger

	fs vfs.FS // for tests; default the operating system's
}

// bounds of the fields.
const (
	defaultBlockCacheBytes, minBlockCacheBytes, maxBlockCacheBytes = 128 << 20, 8 << 20, 64 << 30
	defaultMemtableBytes, minMemtableBytes, maxMemtableBytes       = 16 << 20, 256 << 10, 1 << 30
	defaultMaxMemtables, minMaxMemtables, maxMaxMemtables          = 3, 2, 16

	defaultFlushInterval, minFlushInterval, maxFlushInterval = 5 * time.Second, 10 * time.Millisecond, time.Hour
)

// withDefaults fills what is zero.
func (o Options) withDefaults() Options {
	if o.BlockCacheBytes == 0 {
		o.BlockCacheBytes = defaultBlockCacheBytes
	}
	if o.MemtableBytes == 0 {
		o.MemtableBytes = defaultMemtableBytes
	}
	if o.MaxMemtables == 0 {
		o.MaxMemtables = defaultMaxMemtables
	}
	if o.FlushInterval == 0 {
		o.FlushInterval = defaultFlushInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.fs == nil {
		o.fs = vfs.Default
	}
	return o
}

// validate reports all fields that are out of bounds.
func (o Options) validate() error {
	var faults []error
	check := func(name string, ok bool, bounds string, value any) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s is %v, must be %s", name, value, bounds))
		}
	}
	check("BlockCacheBytes", o.BlockCacheBytes >= minBlockCacheBytes && o.BlockCacheBytes <= maxBlockCacheBytes,
		"8 MiB to 64 GiB", o.BlockCacheBytes)
	check("MemtableBytes", o.MemtableBytes >= minMemtableBytes && o.MemtableBytes <= maxMemtableBytes,
		"256 KiB to 1 GiB", o.MemtableBytes)
	check("MaxMemtables", o.MaxMemtables >= minMaxMemtables && o.MaxMemtables <= maxMaxMemtables, "2 to 16", o.MaxMemtables)
	check("FlushInterval", o.FlushInterval >= minFlushInterval && o.FlushInterval <= maxFlushInterval,
		"10 ms to 1 h", o.FlushInterval)
	check("MaxDiskBytes", o.MaxDiskBytes >= 0, "0 (no bound) or more", o.MaxDiskBytes)
	return errors.Join(faults...)
}
