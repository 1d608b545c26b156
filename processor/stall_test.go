package processor

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/spec"
)

// I14: a job whose function does not return for longer than lease.stall_timeout gives its worker up; one that merely waits, or makes
// progress, does not.
func TestHangingFunctionEndsTheWorker(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	said := make(chan error, 8)
	w := &Worker{name: "w", log: slog.New(slog.DiscardHandler), cluster: c.kafka, jobs: map[int32]*runningJob{},
		plan: &Plan{Pipeline: "p", Spec: &spec.Spec{Lease: spec.Lease{StallTimeout: spec.Duration(200 * time.Millisecond)}}},
		opt:  Options{Stalled: func(err error) { said <- err }}}
	waits, moves, hangs := &job{id: 0}, &job{id: 1}, &job{id: 2}
	for _, j := range []*job{waits, moves} {
		w.jobs[j.id] = &runningJob{job: j, cancel: func() {}}
	}
	moves.busy.Store(true)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			moves.progress.Add(1)
		}
	}()
	stop := w.watchdog()
	defer stop()
	select {
	case err := <-said:
		t.Fatalf("nothing hangs, and yet: %v", err)
	case <-time.After(time.Second):
	}
	hangs.busy.Store(true)
	w.mu.Lock()
	w.jobs[2] = &runningJob{job: hangs, cancel: func() {}}
	w.mu.Unlock()
	select {
	case err := <-said:
		if !strings.Contains(err.Error(), "job 2") {
			t.Errorf("the error does not name the job: %v", err)
		}
	case <-c.ctx.Done():
		t.Fatal("a job hangs and nobody notices")
	}
}

// I6, I13: once the sender has committed a source offset behind the missing record, and the reader has passed the end that the log had
// then, the hole cannot heal: the partition is parked for good and names it. Before that it waits.
func TestHoleThatCannotHealIsNamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 1, "bench.by_user": 1})
	tm := benchTerm(t)
	w, p := tm.job.worker, tm.stages[1].parts[0]
	w.cluster = c.kafka
	f := p.feeds[0]
	c.produce("bench.by_user", 0, "a", "b")
	commit := func(at int64) {
		t.Helper()
		o := kadm.Offsets{}
		o.AddOffset("in", 0, at, -1)
		if _, err := c.admin.CommitOffsets(c.ctx, "bench", o); err != nil {
			t.Fatal(err)
		}
	}
	r := swiftRecord(t, tm, 7, 5)
	r.Offset = 1
	f.batch, f.index = kafka.Batch{Records: nil, Next: 0}, 0
	f.batch.Records = append(f.batch.Records, r)
	if _, _, err := tm.stages[1].process(f); err != nil || p.hole == nil {
		t.Fatalf("no hole: %v", err)
	}
	commit(5) // the missing one is the next that the sender reads: its replay will come
	w.prove(p.hole, f)
	if p.look(time.Now()); p.hole.end.Load() != 0 || p.parked != nil {
		t.Fatalf("judged too early: end %d, %+v", p.hole.end.Load(), p.parked)
	}
	commit(9)
	w.prove(p.hole, f)
	if p.hole.end.Load() != 2 {
		t.Fatalf("the log's end is %d in the proof, want 2", p.hole.end.Load())
	}
	f.position = 1
	if p.look(time.Now()); p.parked != nil {
		t.Fatal("judged before the reader had passed the end")
	}
	f.position = 2
	if p.look(time.Now()); p.parked == nil || !p.parked.final || !strings.Contains(p.parked.cause, "origin partition 0 offset 5") {
		t.Fatalf("the hole is not named: %+v", p.parked)
	}
}
