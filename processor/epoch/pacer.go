package epoch

import (
	"sync"
	"time"
)

// Pacer is a worker's budget of transactions, shared by its jobs. Transactions are the scarce resource of the broker and multiply
// with the jobs, so the worker begins one at most every pace times the time that a commit takes now. It is asked once an epoch.
type Pacer struct {
	mu   sync.Mutex
	pace float64
	took float64 // smoothed nanoseconds of a commit
	next int64   // no transaction begins before
}

// NewPacer returns a pacer; pace 0 switches it off.
func NewPacer(pace float64) *Pacer { return &Pacer{pace: pace} }

// Allowed is the time from which another transaction may begin.
func (p *Pacer) Allowed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// Began notes a transaction's beginning.
func (p *Pacer) Began(now int64) {
	p.mu.Lock()
	p.next = max(p.next, now+int64(p.pace*p.took))
	p.mu.Unlock()
}

// Took notes how long a commit took. Outliers weigh little: at most 50 ms count.
func (p *Pacer) Took(d time.Duration) {
	const most = 50 * time.Millisecond
	p.mu.Lock()
	p.took += (float64(min(d, most)) - p.took) / 8
	p.mu.Unlock()
}
