package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kafka-processor/processor/statestore"
)

// failure holds the first trouble that the database could not report to a caller: of a flush, a compaction or its manifest. From then
// on the store answers nothing and the fence lets no write through, so that what is on disk stays the prefix it was.
type failure struct {
	once   sync.Once
	cause  atomic.Pointer[error]
	failed chan struct{} // closed at the first failure
	log    *slog.Logger
}

func newFailure(log *slog.Logger) *failure {
	return &failure{failed: make(chan struct{}), log: log}
}

// set records the first cause.
func (f *failure) set(cause error) {
	f.once.Do(func() {
		err := wrapCause(cause)
		f.cause.Store(&err)
		f.log.Error("state store failed", "error", err)
		close(f.failed)
	})
}

// err is nil until the store has failed.
func (f *failure) err() error {
	if p := f.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// wrapCause gives a cause the kind that callers act on.
func wrapCause(cause error) error {
	if pebble.IsCorruptionError(cause) || errors.Is(cause, statestore.ErrCorrupt) {
		return fmt.Errorf("%w: %w", statestore.ErrCorrupt, cause)
	}
	return fmt.Errorf("%w: %w", statestore.ErrFailed, cause)
}

// listener turns what the database reports of its background work into failures and progress.
func listener(f *failure, p *progress) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if !errors.Is(err, pebble.ErrCancelledCompaction) {
				f.set(err)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			f.set(fmt.Errorf("%w: %s: %w", statestore.ErrCorrupt, info.Path, info.Details))
		},
		FlushEnd:      func(info pebble.FlushInfo) { p.made(info.Err == nil) },
		CompactionEnd: func(pebble.CompactionInfo) { p.made(false) },
		DiskSlow: func(info pebble.DiskSlowInfo) {
			f.log.Warn("disk is slow", "operation", info.String())
		},
	}
}

// logger takes the database's log. Its Fatalf is expected to end the process; here it fails the store, and the database goes on with
// the error that follows each call: the fence keeps it from writing, and the store from answering.
type logger struct {
	log *slog.Logger
	f   *failure
}

func (l logger) Infof(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Warn(fmt.Sprintf(format, args...))
}

// Fatalf wraps the last error among args, so that its kind is kept.
func (l logger) Fatalf(format string, args ...any) {
	cause := fmt.Errorf(format, args...)
	for _, a := range args {
		if err, ok := a.(error); ok {
			cause = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
		}
	}
	l.f.set(cause)
}

// progress lets callers wait for the next flush or compaction.
type progress struct {
	mu      sync.Mutex
	next    chan struct{} // closed at the next flush or compaction
	flushes atomic.Int64  // that succeeded
}

func newProgress() *progress {
	return &progress{next: make(chan struct{})}
}

// made is called while the database's own lock is held, so it must not call the database.
func (p *progress) made(flush bool) {
	if flush {
		p.flushes.Add(1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next)
	p.next = make(chan struct{})
}

// wait returns a channel that is closed at the next flush or compaction.
func (p *progress) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}
