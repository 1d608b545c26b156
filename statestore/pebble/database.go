package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/kafka-processor/processor/statestore"
)

// never is a threshold of the database that is not reached, since pressure comes first.
const never = 1 << 20

// openDatabase sets the fields that need it.
func (s *Store) openDatabase(dir string) (err error) {
	guarded := fence{FS: s.opts.fs, f: s.failure}
	if err := guarded.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s.lock, err = pebble.LockDirectory(dir, guarded)
	if err != nil {
		return lockError(err)
	}
	s.cache = pebble.NewCache(s.opts.BlockCacheBytes + s.opts.MemtableBytes*int64(s.opts.MaxMemtables))
	defer func() {
		if err != nil {
			_ = s.closeDatabase()
		}
	}()
	if s.db, err = openPebble(dir, s.pebbleOptions(guarded)); err != nil {
		return openError(err)
	}
	if err := s.checkLayout(); err != nil {
		return err
	}
	s.stages, err = loadStages(s.db)
	return err
}

// closeDatabase closes as much as was opened.
func (s *Store) closeDatabase() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	s.cache.Unref()
	return errors.Join(err, s.lock.Close())
}

// pebbleOptions says why each is not the default.
func (s *Store) pebbleOptions(guarded fence) *pebble.Options {
	o := &pebble.Options{
		FS:                 guarded,
		Lock:               s.lock,
		Cache:              s.cache,
		Logger:             logger{log: s.opts.Logger, f: s.failure},
		FormatMajorVersion: pebble.FormatTableFormatV6, // a fixed one: what is written must not follow an upgrade of the library
		DisableWAL:         true,                       // the changelog is the log
		MemTableSize:       uint64(s.opts.MemtableBytes),
		// The database's own stalls end only with a flush that succeeds; pressure stalls earlier and better.
		MemTableStopWritesThreshold: never,
		L0StopWritesThreshold:       never,
		L0CompactionThreshold:       compactionL0,
		L0CompactionFileThreshold:   500,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		EventListener:               listener(s.failure, s.progress),
	}
	o.Experimental.FileCacheShards = 4
	o.TargetFileSizes[0] = 8 << 20
	for i := range o.Levels {
		l := &o.Levels[i]
		l.FilterPolicy = bloom.FilterPolicy(12) // bits a key; 0.5 % false positives; on the lowest level too, see handle.Get
		l.BlockSize = 8 << 10
		l.IndexBlockSize = 128 << 10
		l.Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	return o
}

// openPebble turns a panic over malformed files into an error.
func openPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("%w: %v", statestore.ErrCorrupt, r)
		}
	}()
	return pebble.Open(dir, o)
}

// lockError tells a lock that is taken from one that cannot be had. The library has no type for the former within one process.
func lockError(err error) error {
	if fromSystem(err) && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		return err
	}
	return fmt.Errorf("%w: %w", statestore.ErrLocked, err)
}

// openError tells a store that cannot be read from one that the system does not let us read: of the latter nothing may be deleted.
// The library marks few errors as corruption, so all that the system did not report is taken as such; as is a missing file.
func openError(err error) error {
	if fromSystem(err) && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, statestore.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", statestore.ErrCorrupt, err)
}

// fromSystem tells whether the operating system reported the error.
func fromSystem(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number)
}

// checkLayout writes the version into a new database and compares it in an old one.
func (s *Store) checkLayout() error {
	value, closer, err := s.db.Get(versionKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return s.initLayout()
	}
	if err != nil {
		return readError(err)
	}
	defer closer.Close()
	if len(value) != 1 || value[0] != layoutVersion {
		return fmt.Errorf("%w: layout version %x, this program knows %d", statestore.ErrCorrupt, value, layoutVersion)
	}
	return nil
}

// initLayout makes sure that nothing is there: the version is in the first memtable, so that rows without it were not written here.
func (s *Store) initLayout() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return readError(err)
	}
	found := it.First()
	if err := it.Close(); err != nil {
		return readError(err)
	}
	if found {
		return fmt.Errorf("%w: rows without a layout version", statestore.ErrCorrupt)
	}
	if err := s.db.Set(versionKey, []byte{layoutVersion}, pebble.NoSync); err != nil {
		return fmt.Errorf("write layout version: %w", err)
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("write layout version: %w", err)
	}
	return s.awaitFlush(flushed)
}

// readError gives a read's error its kind.
func readError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", statestore.ErrCorrupt, err)
	}
	return err
}
