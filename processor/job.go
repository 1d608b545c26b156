package processor

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kafka-processor/processor/processor/epoch"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/processor/lease"
)

// job is one vertical slice of the pipeline at this worker. Its lease is taken and kept by lease.go; this file is what it does while
// it holds one.
type job struct {
	worker    *Worker
	id        int32
	log       *slog.Logger
	wakeup    chan struct{}
	progress  atomic.Uint64 // grows while the loop is alive, see Worker.watchdog
	busy      atomic.Bool   // the loop is inside processing
	trimming  atomic.Bool
	events    chan jobEvent
	ended     chan struct{} // closed when nothing of it can act any more
	quit      chan struct{} // closed when the driver has ended
	phase     atomic.Pointer[string]
	failing   atomic.Pointer[joblog.Trouble] // why terms of this job end, until an epoch is committed again
	lastError atomic.Pointer[string]
	current   atomic.Pointer[term] // for status and metrics
}

func (j *job) wake() {
	select {
	case j.wakeup <- struct{}{}:
	default:
	}
}

// run is a term's life after restore: one epoch after another, until something fails or the term is asked to finish.
//
// The order of an epoch: fetch and deduplicate (source.go, dedup), process (process.go, functions), state and timers (state.go),
// outputs (output.go), seal (term.go); then the sender commits and applies it (commit.go) while the next one fills.
func (t *term) run() {
	defer t.loops.Done()
	finishing := false
	for {
		select {
		case <-t.dead:
			return
		case e := <-t.done:
			t.committed(e)
		default:
		}
		select {
		case <-t.finish:
			finishing = true
		default:
		}
		did, drained := false, true
		if !t.machine.Full() && !finishing {
			did, drained = t.work()
		}
		act := t.machine.Step(epoch.Looked, t.input(drained && !did, finishing))
		if act.Ask {
			t.slot = t.job.worker.pacer.Reserve(now())
			continue
		}
		if act.Close {
			t.slot = 0
			if err := t.seal(); err != nil {
				t.fail(lease.Fenced, 0, err)
				return
			}
			continue
		}
		if finishing && t.machine.Idle() {
			t.fail(lease.OK, 0, errFinished)
			return
		}
		if !did {
			t.wait(act.Wake, finishing)
		}
	}
}

// work processes one slice of the first feed that has something, later stages first, and tells whether it did and whether all queues
// are empty.
func (t *term) work() (did, drained bool) {
	clock := time.Now()
	drained = true
	for i, f := range t.feeds {
		if f.part.parked != nil && clock.Before(f.part.parked.until) || !f.peek(t.job.worker.fetcher) {
			if f.err != nil {
				t.inputFailed(f)
			}
			continue
		}
		outputs := len(t.open.outputs)
		t.job.busy.Store(true)
		records, bytes, err := f.part.stage.process(f)
		t.job.busy.Store(false)
		if err != nil {
			t.failStore(err)
			return true, false
		}
		if records > 0 {
			t.rotate(i)
			t.open.input += records
			t.machine.Step(epoch.Worked, epoch.Input{Now: now(), Records: records, Bytes: bytes,
				Silent: f.part.stage.plan.Swift && len(t.open.outputs) == outputs})
			return true, false
		}
	}
	t.passed()
	return false, drained
}

// passed sees to it that an idle input's offset passes transaction markers: else it would show a lag for ever.
func (t *term) passed() {
	for _, f := range t.feeds {
		if f.moved {
			f.moved = false
			t.machine.Step(epoch.Worked, epoch.Input{Now: now(), Bytes: 1, Silent: true})
		}
	}
}

// rotate lets the other partitions of a stage go first next time.
func (t *term) rotate(i int) {
	f := t.feeds[i]
	last := i
	for last+1 < len(t.feeds) && t.feeds[last+1].part.stage == f.part.stage {
		last++
	}
	copy(t.feeds[i:last], t.feeds[i+1:last+1])
	t.feeds[last] = f
}

// committed takes an epoch back from the sender.
func (t *term) committed(e *epochBuffer) {
	for _, ch := range e.states {
		ch.part.state.applied = e.number
	}
	t.machine.Step(epoch.Committed, epoch.Input{Now: now()})
	t.recycle(e)
	if !t.proved {
		t.proved = true
		t.job.failing.Store(nil)
		t.job.post(lease.Event{Kind: lease.Committed}, t)
	}
}

// wait sleeps until something happens.
func (t *term) wait(until int64, finishing bool) {
	if clock := time.Now(); clock.Sub(t.publishedAt) > publishEvery || t.troubled.Load() {
		t.publishedAt = clock
		t.publish()
	}
	finish := t.finish
	if finishing {
		finish = nil // known already
	}
	d := time.Second
	if until > 0 {
		d = min(d, time.Duration(max(0, until-now())))
	}
	for _, f := range t.feeds {
		if f.part.parked != nil {
			if left := time.Until(f.part.parked.until); left > 0 {
				d = min(d, left)
			}
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.dead:
	case <-t.job.wakeup:
	case <-timer.C:
	case e := <-t.done:
		t.committed(e)
	case <-finish:
	}
}

// publishEvery is how old published statistics may be.
const publishEvery = 200 * time.Millisecond

func (t *term) input(drained, finishing bool) epoch.Input {
	t.job.progress.Add(1)
	return epoch.Input{Now: now(), Drained: drained, Finish: finishing, Slot: t.slot}
}

// inputFailed parks a partition whose input cannot be read any more.
func (t *term) inputFailed(f *feed) {
	if f.part.parked != nil && f.part.parked.final {
		return
	}
	at := time.Now()
	f.part.parked = &parked{attempts: 1, since: at, until: at.Add(100 * 365 * 24 * time.Hour), offset: f.position, topic: f.tp.Topic, cause: f.err.Error(), final: true}
	t.troubled.Store(true)
	t.job.log.Error("input cannot be read", "stage", f.part.stage.plan.Name, "topic", f.tp.Topic, "partition", f.tp.Partition, "offset", f.position, "error", f.err)
}

// publish makes troubles and statistics visible to the sender and to status.
func (t *term) publish() {
	stats := t.counters()
	t.statistics.Store(&stats)
	clock := time.Now()
	troubles := []joblog.Trouble{}
	for _, s := range t.stages {
		for _, p := range s.parts {
			if p.hole != nil && p.parked == nil {
				p.look(clock)
			}
			if k := p.parked; k != nil {
				troubles = append(troubles, joblog.Trouble{Stage: s.plan.Name, Partition: p.number, Topic: k.topic, Offset: k.offset, Key: clip(k.key, joblog.MaxKey),
					Cause: clip(k.cause, joblog.MaxCause), Since: k.since.UnixMilli(), NextRetry: k.until.UnixMilli(), Attempts: k.attempts})
			}
		}
	}
	t.troubles.Store(&troubles)
}

// counters are the stages' counters. They go on where the last committed epoch left them, so each message counts once in them too.
func (t *term) counters() []joblog.Stats {
	stats := make([]joblog.Stats, 0, len(t.stages))
	for _, s := range t.stages {
		c := s.stats
		stats = append(stats, joblog.Stats{Stage: s.plan.Name, In: c.in, Out: c.out, Skipped: c.skipped, DeadLetter: c.deadLetter, Duplicates: c.duplicates, Gaps: c.gaps, Foreign: c.foreign})
	}
	return stats
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// start begins the term's two goroutines.
func (t *term) start() {
	t.publish()
	t.loops.Add(2)
	go t.run()
	go t.send()
}

// close ends the term; with finish what is open is committed first, within the deadline of ctx.
func (t *term) close(ctx context.Context, finish bool) {
	if finish {
		close(t.finish)
		t.job.wake()
		select {
		case <-t.dead:
		case <-ctx.Done():
		}
	}
	t.fail(lease.OK, 0, fmt.Errorf("the term was closed"))
	t.release()
}

// now is the clock of epochs: monotonic nanoseconds.
func now() int64 { return int64(time.Since(began)) }

var began = time.Now()
