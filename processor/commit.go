package processor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore"
)

// send is the term's sender: it commits sealed epochs one by one and, when none comes for a probe interval, a probe, so that an idle,
// parked or busy job notices a lost lease. It alone uses the transactional client.
func (t *term) send() {
	defer t.loops.Done()
	interval := time.Duration(t.job.worker.plan.Spec.Lease.ProbeInterval)
	probe := time.NewTicker(min(interval, time.Second))
	defer probe.Stop()
	last := time.Now()
	for {
		select {
		case <-t.dead:
			return
		case e := <-t.sealedEpochs:
			if !t.commit(e) {
				return
			}
			last = time.Now()
		case <-probe.C:
			if time.Since(last) < interval && !t.troubled.Swap(false) {
				continue
			}
			if !t.probe() {
				return
			}
			last = time.Now()
		}
	}
}

// commit sends one epoch: first every swift record of its prefix must be acknowledged, then one transaction, then the store.
func (t *term) commit(e *epochBuffer) bool {
	sealed := time.Now()
	if !t.acknowledged(e) {
		return false
	}
	t.remember(e)
	records := e.outputs
	for i := range e.states {
		records = append(records, e.states[i].records...)
	}
	r := t.view
	r.Kind, r.At = joblog.Epoch, time.Now().UnixMilli()
	offsets := e.offsets
	if r.Complete = time.Since(t.completeAt) >= time.Duration(t.job.worker.plan.Spec.Lease.ProbeInterval); r.Complete {
		offsets = t.allOffsets()
	} else {
		r.Offsets = delta(e.offsets, t.view.Offsets)
	}
	began := time.Now()
	waited := began.Sub(sealed)
	entry := t.logRecord(&r)
	if err := t.txn.Commit(append(records, entry), offsets); err != nil {
		t.failStep(e.number, err)
		return false
	}
	took := time.Since(began)
	t.job.worker.pacer.Took(took)
	t.job.worker.metrics.committed(t.job.id, took, e.input, len(records))
	if r.Complete {
		t.completed(entry)
	}
	if err := apply(e, t.job.worker.incarnation, t.job.worker.topology); err != nil {
		t.failStore(err)
		return false
	}
	parts := t.txn.Took
	t.job.worker.metrics.took([5]time.Duration{waited, parts[0], parts[1], parts[2], time.Since(began) - took})
	select {
	case t.done <- e:
		t.job.wake()
	case <-t.dead:
	}
	return true
}

// acknowledged waits for the swift records of the epoch's prefix. Probes go on meanwhile: a send that hangs must not hide a lost lease.
func (t *term) acknowledged(e *epochBuffer) bool {
	select {
	case <-e.acked:
		return true
	default:
	}
	probe := time.NewTicker(time.Duration(t.job.worker.plan.Spec.Lease.ProbeInterval))
	defer probe.Stop()
	for {
		select {
		case <-e.acked:
			return true
		case <-t.dead:
			return false
		case <-probe.C:
			if !t.probe() {
				return false
			}
		}
	}
}

// remember moves the view on to what holds once the epoch is committed.
func (t *term) remember(e *epochBuffer) {
	t.view.EpochTerm, t.view.EpochNumber = t.number, e.number
	for _, o := range e.offsets {
		for tp, at := range o.At {
			for i := range t.view.Offsets {
				if v := &t.view.Offsets[i]; v.Partition == tp.Partition && v.Topic == tp.Topic && t.groupOf(v) == o.Group {
					v.Offset = at
				}
			}
		}
	}
	t.view.Stats = e.stats
	t.tell()
}

// tell puts the newest troubles into the view: parked partitions, and why earlier terms of the job ended.
func (t *term) tell() {
	t.view.Troubles = nil
	if p := t.troubles.Load(); p != nil {
		t.view.Troubles = append(t.view.Troubles, *p...)
	}
	if f := t.job.failing.Load(); f != nil {
		t.view.Troubles = append(t.view.Troubles, *f)
	}
}

// groupOf is the consumer group under which an input's offsets are committed.
func (t *term) groupOf(o *joblog.Offset) string {
	for _, s := range t.stages {
		if s.plan.Name != o.Stage {
			continue
		}
		for _, in := range s.plan.Inputs {
			if in.Topic == o.Topic {
				return in.Group
			}
		}
	}
	return t.job.worker.plan.Pipeline
}

// delta are the offsets that an epoch changed.
func delta(changed []kafka.Offsets, all []joblog.Offset) []joblog.Offset {
	var out []joblog.Offset
	for i := range all {
		for _, o := range changed {
			if at, ok := o.At[kafka.TP{Topic: all[i].Topic, Partition: all[i].Partition}]; ok && at == all[i].Offset {
				out = append(out, all[i])
				break
			}
		}
	}
	return out
}

// allOffsets are the offsets of every input: complete records commit them again, so that none expires.
func (t *term) allOffsets() []kafka.Offsets {
	byGroup := map[string]map[kafka.TP]int64{}
	for i := range t.view.Offsets {
		o := &t.view.Offsets[i]
		g := t.groupOf(o)
		if byGroup[g] == nil {
			byGroup[g] = map[kafka.TP]int64{}
		}
		byGroup[g][kafka.TP{Topic: o.Topic, Partition: o.Partition}] = o.Offset
	}
	var out []kafka.Offsets
	for g, at := range byGroup {
		out = append(out, kafka.Offsets{Group: g, At: at})
	}
	return out
}

// probe commits a record that says no more than that the lease is held. It carries committed values only.
func (t *term) probe() bool { return t.record(joblog.Probe, t.allOffsets()) == nil }

// keepAlive commits probes while the term restores; lost is called if one shows that the lease is gone. stop ends it and waits.
func (t *term) keepAlive(lost func()) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Duration(t.job.worker.plan.Spec.Lease.ProbeInterval))
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if t.record(joblog.Probe, nil) != nil {
				lost()
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}

// record commits a complete record without an epoch: acquired, or a probe. Before the positions are known it commits no offsets: what
// the log repeats may be old if the number of jobs was another one; the group's offsets are the truth.
func (t *term) record(kind joblog.Kind, offsets []kafka.Offsets) error {
	t.tell()
	r := t.view
	r.Kind, r.Complete, r.At = kind, true, time.Now().UnixMilli()
	entry := t.logRecord(&r)
	if err := t.txn.Commit([]*kgo.Record{entry}, offsets); err != nil {
		t.failStep(0, err)
		return err
	}
	if offsets != nil {
		t.completed(entry)
	}
	return nil
}

func (t *term) logRecord(r *joblog.Record) *kgo.Record {
	return &kgo.Record{Topic: spec.JobsTopic(t.job.worker.plan.Pipeline), Partition: t.job.id, Value: joblog.Encode(r)}
}

// trimEvery is how often consumed records of internal topics are deleted.
const trimEvery = 10 * time.Second

// completed follows a complete record: what lies before it in the job log, and what was consumed of internal streams, is deleted now
// and then.
func (t *term) completed(entry *kgo.Record) {
	t.completeAt = time.Now()
	if time.Since(t.trimmedAt) < trimEvery {
		return
	}
	t.trimmedAt = t.completeAt
	below := map[kafka.TP]int64{{Topic: entry.Topic, Partition: entry.Partition}: entry.Offset}
	for _, s := range t.stages {
		for _, in := range s.plan.Inputs {
			for i := range t.view.Offsets {
				if o := &t.view.Offsets[i]; in.Internal() && o.Stage == s.plan.Name && o.Topic == in.Topic && o.Offset > 0 {
					below[kafka.TP{Topic: o.Topic, Partition: o.Partition}] = o.Offset
				}
			}
		}
	}
	t.job.worker.trim(t.job, below)
}

// apply brings a committed epoch into the local store, for each stage partition in one step with the changelog offset behind it.
func apply(e *epochBuffer, incarnation uint64, top *Topology) error {
	for i := range e.states {
		ch := &e.states[i]
		last := ch.records[len(ch.records)-1].Offset
		slices.SortFunc(ch.changes, func(a, b statestore.Change) int { return bytes.Compare(a.Key, b.Key) })
		topic := ch.part.stage.plan.StateTopic
		pos := statestore.Position{Topic: top.Topics[topic].ID, Incarnation: incarnation, Offset: last + 1, AtEnd: time.Now().UnixMilli()}
		if err := ch.part.state.handle.Apply(ch.changes, pos); err != nil {
			return fmt.Errorf("local store, stage %s partition %d: %w", ch.part.stage.plan.Name, ch.part.number, err)
		}
	}
	return nil
}

func appendRunning(dst []byte, n uint64) []byte {
	return statestore.AppendValue(dst, 0, binary.BigEndian.AppendUint64(nil, n))
}

func parseRunning(payload []byte) (uint64, error) {
	if len(payload) != 8 {
		return 0, fmt.Errorf("running number of %d bytes", len(payload))
	}
	return binary.BigEndian.Uint64(payload), nil
}

// closing bounds how long a term may take to finish its open epoch.
func (w *Worker) closing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(w.plan.Spec.Lease.TransactionTimeout))
}
