package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/epoch"
	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/processor/lease"
	"github.com/kafka-processor/processor/statestore"
)

// term is one holding of a job's lease: its clients, its memory, its store handles. The first error ends it, and nothing of it is
// used again.
//
// Two goroutines work for it: the job's loop (job.go), which processes and seals epochs, and the sender (commit.go), which commits
// them and applies them to the store. They share only sealed epochs, handed over by channels.
type term struct {
	job    *job
	number uint64
	txn    *kafka.Transactional
	swift  *kgo.Client // nil without swift stages

	stages      []*stageRun // in topological order
	feeds       []*feed     // all of them, later stages first
	machine     epoch.Machine
	epochs      uint64 // number of the last sealed epoch
	open        *epochBuffer
	spare       []*epochBuffer
	slot        int64 // reserved for the open epoch's transaction; 0: none
	proved      bool  // an epoch of the term was committed
	publishedAt time.Time

	sealedEpochs chan *epochBuffer // to the sender
	done         chan *epochBuffer // back from it: committed and applied
	view         joblog.Record     // what the last complete record would say now; the sender's
	completeAt   time.Time         // of the last complete record; the sender's
	trimmedAt    time.Time
	troubled     atomic.Bool // troubles have changed: a probe should tell
	troubles     atomic.Pointer[[]joblog.Trouble]
	statistics   atomic.Pointer[[]joblog.Stats]

	once    sync.Once
	failure termFailure
	dead    chan struct{} // closed by the first failure, or by close
	loops   sync.WaitGroup
	finish  chan struct{} // closed: seal what is there, commit it, and end
}

// termFailure is why a term ended.
type termFailure struct {
	verdict lease.Verdict
	epoch   uint64 // if its outcome is unknown
	cause   error
}

// errFinished ends a term that was asked to.
var errFinished = errors.New("the job was asked to stop")

// fail ends the term with its first error.
func (t *term) fail(v lease.Verdict, number uint64, cause error) {
	t.once.Do(func() {
		t.failure = termFailure{v, number, cause}
		close(t.dead)
	})
}

// failStore ends the term with an error of the local store. A store that fails does not mend itself: the worker ends, its jobs go to
// others, and nothing is lost, since the changelog has all of it.
func (t *term) failStore(err error) {
	if errors.Is(err, statestore.ErrRevoked) {
		t.fail(lease.Fenced, 0, err)
		return
	}
	t.fail(lease.Fatal, 0, err)
}

// failStep ends the term with an error of the transactional client.
func (t *term) failStep(number uint64, err error) {
	v := verdictOf(err)
	if v == lease.OK {
		v = lease.Fenced
	}
	t.fail(v, number, err)
}

// verdictOf maps an error of the Kafka layer to the verdict table.
func verdictOf(err error) lease.Verdict {
	var se *kafka.StepError
	if !errors.As(err, &se) {
		return lease.Classify(err, lease.StepRead)
	}
	step := map[kafka.Step]lease.Step{kafka.StepInit: lease.StepInit, kafka.StepProduce: lease.StepProduce, kafka.StepOffsets: lease.StepOffsets, kafka.StepEnd: lease.StepEnd}[se.Step]
	return lease.Classify(se.Err, step)
}

// epochBuffer holds all effects of one epoch.
type epochBuffer struct {
	number  uint64
	arena   arena
	slabs   [][]kgo.Record
	slab    int // being filled
	filled  int // records of it in use
	outputs []*kgo.Record
	states  []stateChanges
	offsets []kafka.Offsets
	input   int            // messages
	stats   []joblog.Stats // as of the seal, since the pipeline began

	pending atomic.Int64 // swift records that are not acknowledged, plus one until the epoch is sealed
	acked   chan struct{}
	promise func(*kgo.Record, error)
}

// stateChanges are the changelog records of one stage partition.
type stateChanges struct {
	part    *part
	records []*kgo.Record
	changes []statestore.Change
}

const slabRecords = 512

func (t *term) newEpoch() *epochBuffer {
	var e *epochBuffer
	if n := len(t.spare); n > 0 {
		e, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		e = &epochBuffer{}
	}
	e.acked = make(chan struct{})
	e.pending.Store(1)
	e.promise = func(r *kgo.Record, err error) {
		if err != nil {
			t.fail(lease.Classify(err, lease.StepProduce), 0, fmt.Errorf("swift record to %s/%d: %w", r.Topic, r.Partition, err))
			return
		}
		if e.pending.Add(-1) == 0 {
			close(e.acked)
		}
	}
	return e
}

// record returns a fresh record, valid until the buffer is recycled.
func (e *epochBuffer) record() *kgo.Record {
	if e.filled == slabRecords {
		e.slab, e.filled = e.slab+1, 0
	}
	if e.slab == len(e.slabs) {
		e.slabs = append(e.slabs, make([]kgo.Record, slabRecords))
	}
	r := &e.slabs[e.slab][e.filled]
	e.filled++
	*r = kgo.Record{}
	return r
}

// size is about what the epoch holds in memory, in bytes: its records' bytes, the records themselves and what the client adds.
func (e *epochBuffer) size() int64 {
	const overhead = 320
	return e.arena.used + int64(e.slab*slabRecords+e.filled)*overhead
}

// recycle makes a committed epoch's memory free for a later one.
func (t *term) recycle(e *epochBuffer) {
	const keepSlabs = 32
	if len(e.slabs) > keepSlabs {
		e.slabs = e.slabs[:keepSlabs]
	}
	for _, s := range e.slabs[:min(e.slab+1, len(e.slabs))] {
		clear(s)
	}
	e.arena.reset()
	clear(e.outputs)
	for i := range e.states {
		ch := &e.states[i]
		clear(ch.records)
		clear(ch.changes)
		ch.part, ch.records, ch.changes = nil, ch.records[:0], ch.changes[:0]
	}
	e.slab, e.filled, e.input = 0, 0, 0
	e.outputs, e.states, e.offsets = e.outputs[:0], e.states[:0], nil
	if cap(e.outputs) > 1<<17 {
		e.outputs = nil
	}
	if len(t.spare) < 2 {
		t.spare = append(t.spare, e)
	}
}

// sendSwift hands a record to the idempotent producer; the epoch counts it until it is acknowledged.
func (t *term) sendSwift(e *epochBuffer, r *kgo.Record) {
	e.pending.Add(1)
	t.swift.Produce(context.Background(), r, e.promise)
}

// seal closes the open epoch: everything that its messages did, and nothing else, goes to the sender.
func (t *term) seal() error {
	e := t.open
	t.epochs++
	e.number, e.stats = t.epochs, t.counters()
	for _, s := range t.stages {
		for _, p := range s.parts {
			if p.state != nil {
				if err := p.seal(e); err != nil {
					return err
				}
			}
		}
	}
	byGroup := map[string]map[kafka.TP]int64{}
	for _, f := range t.feeds {
		if f.position == f.sealed {
			continue
		}
		if byGroup[f.input.Group] == nil {
			byGroup[f.input.Group] = map[kafka.TP]int64{}
		}
		byGroup[f.input.Group][f.tp] = f.position
		f.sealed = f.position
	}
	for g, at := range byGroup {
		e.offsets = append(e.offsets, kafka.Offsets{Group: g, At: at})
	}
	if e.pending.Add(-1) == 0 {
		close(e.acked)
	}
	t.open = t.newEpoch()
	t.sealedEpochs <- e // never blocks: the machine allows one epoch at a time
	return nil
}

// seal adds the partition's changelog records to the epoch.
func (p *part) seal(e *epochBuffer) error {
	if len(e.states) < cap(e.states) {
		e.states = e.states[:len(e.states)+1] // with the slices of an earlier epoch
	} else {
		e.states = append(e.states, stateChanges{})
	}
	ch := &e.states[len(e.states)-1]
	ch.part = p
	add := func(key, value []byte) {
		r := e.record()
		r.Topic, r.Partition, r.Key = p.stage.plan.StateTopic, p.number, key
		if len(value) > 0 {
			r.Value = value
		}
		ch.records = append(ch.records, r)
		ch.changes = append(ch.changes, statestore.Change{Key: key, Value: value})
	}
	if err := p.state.seal(e.number, &e.arena, add); err != nil {
		return fmt.Errorf("stage %s partition %d: %w", p.stage.plan.Name, p.number, err)
	}
	for _, f := range p.feeds {
		if f.frontier == nil {
			continue
		}
		f.frontier.AppendDirty(func(key, value []byte) {
			k := e.arena.end(statestore.AppendKey(e.arena.begin(), statestore.KindFrontier, f.input.Stream, key))
			var v []byte
			if len(value) > 0 {
				v = e.arena.end(statestore.AppendValue(e.arena.begin(), 0, value))
			}
			add(k, v)
		})
	}
	if p.running != p.numbered {
		p.numbered = p.running
		k := e.arena.end(statestore.AppendKey(e.arena.begin(), statestore.KindRunningNumber, "", nil))
		add(k, e.arena.end(appendRunning(e.arena.begin(), p.running)))
	}
	if len(ch.records) == 0 {
		e.states = e.states[:len(e.states)-1]
	}
	return nil
}

// newStage makes the runtime of a stage for this term.
func (t *term) newStage(st *Stage, top *Topology, incarnation uint64) (*stageRun, error) {
	s := &stageRun{term: t, plan: st, fingerprint: stageFingerprint(incarnation, st), limit: int(top.Topics[st.StateTopic].MaxBytes) - recordOverhead}
	for _, in := range st.Inputs {
		s.addInput(in)
	}
	for _, n := range st.Nodes {
		f, faults := functions.Build(n.Config)
		for _, fault := range faults {
			if !fault.Warning {
				return nil, fmt.Errorf("computation %s: %s", n.Name, fault.Message)
			}
		}
		nd := &node{plan: n, function: f}
		nd.out = nodeOutput{s, nd}
		for _, ways := range n.Routes {
			nd.routes = append(nd.routes, s.newRoutes(ways, top, st.Swift))
		}
		nd.deadLetter = s.newRoutes(n.DeadLetter, top, false)
		s.nodes = append(s.nodes, nd)
	}
	return s, nil
}
