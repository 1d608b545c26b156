package epoch

import (
	"sync"
	"time"
)

// Pacer is a worker's budget of transactions, shared by its jobs. Transactions are the scarce resource of the broker and multiply
// with the jobs: each one's beginning keeps a distance from the one before that follows what commits take now. Slots are given out
// in the order of asking, so no job starves. It is asked once an epoch.
type Pacer struct {
	mu   sync.Mutex
	pace float64
	took float64 // smoothed nanoseconds of a commit
	next int64   // slot of the next who asks
}

// concurrent is how many commits of a worker may be under way at a pace of 1.
const concurrent = 2

// NewPacer returns a pacer. At pace 1 about two commits are under way at a time; at 2, one; near 0, as many as there are jobs.
func NewPacer(pace float64) *Pacer { return &Pacer{pace: pace} }

// Reserve returns the time, at or after now and not 0, at which the asking job may begin its transaction.
func (p *Pacer) Reserve(now int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := max(p.next, now, 1)
	p.next = slot + int64(p.pace*p.took/concurrent)
	return slot
}

// Took notes how long a commit took. Outliers weigh little: at most 50 ms count.
func (p *Pacer) Took(d time.Duration) {
	const most = 50 * time.Millisecond
	p.mu.Lock()
	p.took += (float64(min(d, most)) - p.took) / 8
	p.mu.Unlock()
}
