package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/epoch"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/processor/lease"
	"github.com/kafka-processor/processor/spec"
)

// jobEvent is an event for a job's lease machine. Answers carry the term's round: those of a round that was dropped do not count.
type jobEvent struct {
	event lease.Event
	round int // 0: not an answer
}

// tell gives the lease machine an event that is no answer.
func (j *job) tell(e lease.Event) {
	select {
	case j.events <- jobEvent{event: e}:
	case <-j.quit:
	}
}

// remember keeps a failure for status: the job log carries it until an epoch is committed again.
func (j *job) remember(err error) {
	text := err.Error()
	j.lastError.Store(&text)
	tr := joblog.Trouble{Partition: j.id, Cause: clip(text, joblog.MaxCause), Since: time.Now().UnixMilli(), Attempts: 1}
	if old := j.failing.Load(); old != nil {
		tr.Since, tr.Attempts = old.Since, old.Attempts+1
	}
	j.failing.Store(&tr)
}

// post gives the machine an event of a running term, without ever blocking its loops.
func (j *job) post(e lease.Event, t *term) {
	go func() {
		if j.current.Load() == t {
			j.tell(e)
		}
	}()
}

// driver carries out what a job's lease machine says: one action at a time, in a goroutine of its own, so that the machine always
// hears of a revocation.
type driver struct {
	job     *job
	machine lease.Machine
	round   int
	cancel  context.CancelFunc // of the action under way
	idle    chan struct{}      // closed when it has ended
	term    *term
	fold    joblog.Fold
	failed  time.Time
}

// drive runs until the worker closes events' context or the machine leaves the group.
func (j *job) drive(ctx context.Context, generation uint64) {
	d := &driver{job: j, machine: lease.New(j.id, generation), round: 1, cancel: func() {}, idle: closedChannel()}
	defer func() {
		d.cancel()
		close(j.quit) // whoever would tell something more is not kept waiting
		<-d.idle
		close(j.ended)
	}()
	act := d.machine.Step(lease.Event{Kind: lease.Assigned})
	for {
		phase := d.machine.Phase()
		j.phase.Store(&phase)
		d.start(act)
		if act.Kind == lease.LeaveGroup {
			<-d.idle
			j.worker.leave(errors.New(act.Reason))
			return
		}
		if act.Kind == lease.StandDown && ctx.Err() != nil {
			return
		}
		act = lease.Action{}
		done := ctx.Done()
		for act.Kind == lease.None {
			select {
			case <-done:
				done = nil
				act = d.machine.Step(lease.Event{Kind: lease.Revoked})
			case e := <-j.events:
				if e.round != 0 && e.round != d.round {
					continue
				}
				act = d.machine.Step(e.event)
			}
			phase := d.machine.Phase()
			j.phase.Store(&phase)
		}
	}
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// start begins an action.
func (d *driver) start(act lease.Action) {
	switch act.Kind {
	case lease.None, lease.LeaveGroup:
		return
	case lease.StandDown:
		d.cancel()
		d.job.log.Info("job stood down", "reason", act.Reason)
		return
	case lease.DropTerm:
		d.round++
		d.cancel()
	}
	idle, round := d.idle, d.round
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.idle = cancel, make(chan struct{})
	ended := d.idle
	go func() {
		<-idle // the cancelled action before it
		e := d.do(ctx, act)
		close(ended)
		if e.Kind != 0 {
			select {
			case d.job.events <- jobEvent{e, round}:
			case <-d.job.quit:
			}
		}
	}()
}

// do carries out one action and returns the answer.
func (d *driver) do(ctx context.Context, act lease.Action) lease.Event {
	switch act.Kind {
	case lease.ReadControl:
		return d.readControl(ctx)
	case lease.InitProducerID:
		return d.initialize(ctx)
	case lease.ReadLog:
		return d.readLog(ctx)
	case lease.CommitAcquired:
		return d.commitAcquired(act)
	case lease.Restore:
		return d.restore(ctx)
	case lease.Run:
		return d.run(ctx)
	case lease.AwaitHeartbeat:
		d.await(ctx, act.Attempt)
	case lease.DropTerm:
		d.drop(act)
		return lease.Event{Kind: lease.Released}
	}
	return lease.Event{}
}

// answer is a failed action's event.
func (d *driver) answer(err error) lease.Event {
	d.failed = time.Now()
	v := verdictOf(err)
	d.job.log.Warn("lease step failed", "verdict", v.String(), "error", err)
	d.job.remember(err)
	return lease.Event{Kind: lease.Failed, Verdict: v, Reason: err.Error()}
}

func (d *driver) readControl(ctx context.Context) lease.Event {
	s, err := d.job.worker.readControl(ctx)
	if err != nil {
		return d.answer(err)
	}
	return lease.Event{Kind: lease.ControlRead, Generation: s.Generation, Running: s.Run == control.Running}
}

// initialize fences the previous holder and ends what it left open.
func (d *driver) initialize(ctx context.Context) lease.Event {
	w := d.job.worker
	txn, err := kafka.OpenTransactional(ctx, w.cluster, spec.JobTransactionalID(w.plan.Pipeline, int(d.job.id)), time.Duration(w.plan.Spec.Lease.TransactionTimeout), w.topology.limit)
	if err != nil {
		return d.answer(err)
	}
	d.term = &term{job: d.job, txn: txn, dead: make(chan struct{}), finish: make(chan struct{}), sealedEpochs: make(chan *epochBuffer, 1), done: make(chan *epochBuffer, 1),
		machine: epoch.Machine{Config: epoch.Config{MaxInterval: time.Duration(w.plan.Spec.Epoch.MaxInterval), Settle: time.Duration(w.plan.Spec.Epoch.Settle),
			MaxRecords: w.plan.Spec.Epoch.MaxRecords, MaxBytes: w.epochBytes()}}}
	return lease.Event{Kind: lease.Initialized}
}

// readLog reads the job log up to its read-uncommitted end, and control once more.
func (d *driver) readLog(ctx context.Context) lease.Event {
	w := d.job.worker
	fold, err := readJobLog(ctx, w.cluster, w.plan.Pipeline, d.job.id, true)
	if err != nil {
		return d.answer(err)
	}
	s, err := w.readControl(ctx)
	if err != nil {
		return d.answer(err)
	}
	d.fold = fold
	e := lease.Event{Kind: lease.LogRead, Generation: s.Generation, Running: s.Run == control.Running}
	if fold.Ready() {
		v := fold.View()
		e.LogGeneration, e.Term, e.EpochTerm, e.EpochNumber = v.Generation, v.Term, v.EpochTerm, v.EpochNumber
	}
	return e
}

// readJobLog returns the complete view of a job log. For whoever has fenced it the bound is its read-uncommitted end,
// reached by read-committed position; it is read backwards in growing steps until a committed complete record appears, since a log may end in aborted records and markers.
// Others read what is committed, and wait for nobody's transaction.
func readJobLog(ctx context.Context, c *kafka.Cluster, pipeline string, id int32, fenced bool) (joblog.Fold, error) {
	tp := kafka.TP{Topic: spec.JobsTopic(pipeline), Partition: id}
	for attempt := 0; ; attempt++ {
		fold, err := readJobLogOnce(ctx, c, tp, fenced)
		// The holder may trim the log between the look at its start and the read.
		if !errors.Is(err, kerr.OffsetOutOfRange) || attempt == 10 {
			return fold, err
		}
	}
}

func readJobLogOnce(ctx context.Context, c *kafka.Cluster, tp kafka.TP, fenced bool) (joblog.Fold, error) {
	start, err := c.Start(ctx, tp)
	if err != nil {
		return joblog.Fold{}, err
	}
	end, err := c.End(ctx, tp, !fenced)
	if err != nil {
		return joblog.Fold{}, err
	}
	for step := int64(256); ; step *= 8 {
		from := max(start, end-step)
		var fold joblog.Fold
		err := c.ReadTo(ctx, tp, from, end, func(records []*kgo.Record, _ int64) error {
			for _, r := range records {
				rec, err := joblog.Decode(r.Value)
				if err == nil {
					err = fold.Apply(rec)
				}
				if err != nil {
					return fmt.Errorf("%v offset %d: %w", tp, r.Offset, err)
				}
			}
			return nil
		})
		if err != nil || fold.Ready() || from == start {
			return fold, err
		}
	}
}

// commitAcquired makes the term known: from here on the lease is held.
func (d *driver) commitAcquired(act lease.Action) lease.Event {
	t, w := d.term, d.job.worker
	if d.fold.Ready() {
		t.view = *d.fold.View()
	}
	if act.Doubt != lease.NoDoubt {
		d.job.log.Info("unknown outcome resolved", "epoch", act.EpochNumber, "outcome", act.Doubt.String())
	}
	t.number = act.Term
	t.view.Generation, t.view.Term, t.view.EpochTerm, t.view.EpochNumber = w.generation, act.Term, act.EpochTerm, act.EpochNumber
	t.view.Worker, t.view.Job, t.view.Jobs = w.name, d.job.id, w.plan.Jobs
	t.view.Troubles = nil
	if err := t.record(joblog.Acquired, nil); err != nil {
		return d.answer(err)
	}
	d.job.log.Info("job acquired", "term", act.Term, "generation", t.view.Generation, "worker", w.name)
	return lease.Event{Kind: lease.AcquiredCommitted}
}

// restore loads state and positions; meanwhile probes hold the lease, or show that it is lost.
func (d *driver) restore(ctx context.Context) lease.Event {
	t := d.term
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := t.keepAlive(cancel)
	offsets, err := t.restore(ctx, &d.fold)
	stop()
	select {
	case <-t.dead:
		err = t.failure.cause
	default:
	}
	if err == nil {
		err = t.begin(offsets)
	}
	if err != nil {
		return d.answer(err)
	}
	return lease.Event{Kind: lease.Restored}
}

// run processes until the term ends by itself or is dropped.
func (d *driver) run(ctx context.Context) lease.Event {
	t := d.term
	d.job.current.Store(t)
	t.start()
	select {
	case <-ctx.Done():
		return lease.Event{} // dropped: close does the rest
	case <-t.dead:
	}
	f := t.failure
	d.failed = time.Now()
	d.job.log.Warn("term failed", "term", t.number, "verdict", f.verdict.String(), "error", f.cause)
	d.job.remember(f.cause)
	if f.verdict == lease.Refused || errors.Is(f.cause, kerr.UnknownTopicOrPartition) || errors.Is(f.cause, kerr.UnknownTopicID) {
		// The topics are not what they were when this worker looked at them.
		d.job.worker.lookAgain()
	}
	return lease.Event{Kind: lease.Failed, Verdict: f.verdict, EpochNumber: f.epoch, Reason: f.cause.Error()}
}

// await waits a growing pause and for a heartbeat that was sent after the failure and answered.
func (d *driver) await(ctx context.Context, attempt uint32) {
	pause(ctx, min(20*time.Millisecond<<min(attempt, 8), 5*time.Second))
	if ctx.Err() != nil {
		return
	}
	d.job.tell(lease.Event{Kind: lease.PauseOver})
	if d.job.worker.heartbeatAfter(ctx, d.failed) {
		d.job.tell(lease.Event{Kind: lease.Heartbeat})
	}
}

// drop ends the term: nothing of it can act any more when it returns.
func (d *driver) drop(act lease.Action) {
	t := d.term
	d.term = nil
	if t == nil {
		return
	}
	ctx, cancel := d.job.worker.closing()
	defer cancel()
	t.close(ctx, act.Finish && d.job.current.Load() == t)
	d.job.current.Store(nil)
	d.job.log.Info("term ended", "term", t.number, "cause", act.Reason, "error", t.failure.cause)
}

// release closes everything that the term held.
func (t *term) release() {
	t.txn.Close()
	if t.swift != nil {
		t.swift.Close()
	}
	t.loops.Wait() // from here on nobody else uses the feeds
	for _, f := range t.feeds {
		f.close()
		if f.sub != nil {
			t.job.worker.fetcher.Unsubscribe(f.sub)
		}
	}
	for _, s := range t.stages {
		for _, p := range s.parts {
			if p.state != nil && p.state.handle != nil {
				p.state.handle.Revoke()
			}
		}
	}
}
