package processor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/dedup"
)

// Bounds of what a job has fetched and not yet processed.
const (
	queueBatches = 2       // fetches of one partition
	queueBytes   = 1 << 20 // of one stage of one job
)

// feed is one input partition of a stage partition, as one term reads it. Its queue is filled by the fetcher; all else belongs to
// the job's goroutine.
//
// Cursors, each at most its successor: sealed (in the epoch being sent, or committed) <= position (next to process) <=
// next offset to fetch.
type feed struct {
	part        *part
	input       *Input
	tp          kafka.TP
	topic       [16]byte
	fingerprint uint64          // origin of the messages that a swift stage or a transform source makes of this topic
	frontier    *dedup.Frontier // of an internal stream: what has been taken of each origin
	chains      []*dedup.Chain  // by swift route of the stage: predecessors handed to the producer in this term
	sub         *kafka.Subscription
	queued      *atomic.Int64 // bytes queued in this stage of this job
	wake        func()        // of the job

	position int64 // next offset to process
	sealed   int64 // position at the last seal

	batch kafka.Batch // being processed
	index int         // next record of it
	moved bool        // position has passed records that nobody sees

	mu     sync.Mutex
	queue  []kafka.Batch
	err    error // the subscription has ended with it
	closed bool
}

// Ready is kafka.Taker's.
func (f *feed) Ready() bool {
	if f.queued.Load() >= queueBytes {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) < queueBatches
}

// Take is kafka.Taker's.
func (f *feed) Take(b kafka.Batch) {
	f.mu.Lock()
	if !f.closed {
		f.queue = append(f.queue, b)
		f.queued.Add(b.Bytes)
	}
	f.mu.Unlock()
	f.wake()
}

// peek makes the current batch non-empty if it can, and tells whether there is something to do.
func (f *feed) peek(fetcher *kafka.Fetcher) bool {
	for f.index >= len(f.batch.Records) {
		if f.batch.Next > f.position {
			f.position, f.moved = f.batch.Next, true // markers and aborted records behind the last one
		}
		f.queued.Add(-f.batch.Bytes)
		f.batch, f.index = kafka.Batch{}, 0
		f.mu.Lock()
		if len(f.queue) == 0 {
			f.mu.Unlock()
			return false
		}
		b := f.queue[0]
		f.queue[0] = kafka.Batch{}
		f.queue = f.queue[:copy(f.queue, f.queue[1:])]
		if b.Err != nil {
			f.err = b.Err
		}
		full := len(f.queue) == queueBatches-1
		f.mu.Unlock()
		f.batch = b
		if full {
			fetcher.Wake(f.sub)
		}
	}
	return true
}

// slice returns at most n records from the current batch, without taking them.
func (f *feed) slice(n int) []*kgo.Record {
	return f.batch.Records[f.index:min(f.index+n, len(f.batch.Records))]
}

// took moves behind the first n records of the slice.
func (f *feed) took(n int) {
	if n == 0 {
		return
	}
	f.position = f.batch.Records[f.index+n-1].Offset + 1
	f.index += n
	if f.index == len(f.batch.Records) && f.batch.Next > f.position {
		f.position = f.batch.Next
	}
}

func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	f.queue = nil
	f.mu.Unlock()
}

// parked is why a stage partition does not go on.
type parked struct {
	attempts uint32
	since    time.Time
	until    time.Time // of the next try
	offset   int64
	topic    string
	key      string
	cause    string
	final    bool // it waits for nothing: only a new term tries again
}

// longestPause is the longest that a partition waits before a message that failed.
const longestPause = 30 * time.Second

// pauseAfter is how long to wait after so many attempts: the policy's pause at first, twice as long each time.
func pauseAfter(first time.Duration, attempts uint32) time.Duration {
	return min(max(first, time.Millisecond)<<min(attempts-1, 16), longestPause)
}
