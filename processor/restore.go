package processor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/dedup"
	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore"
)

// restore loads what the term needs: stages, state up to the changelog's end, committed offsets. It runs after the acquired record is
// committed, so nothing that it reads can change any more but by this term.
func (t *term) restore(ctx context.Context, log *joblog.Fold) ([]joblog.Offset, error) {
	w := t.job.worker
	for _, st := range w.plan.Stages {
		s, err := t.newStage(st, w.topology, w.incarnation)
		if err != nil {
			return nil, err
		}
		for _, c := range t.view.Stats {
			if c.Stage == st.Name {
				s.stats = stageStats{c.In, c.Out, c.Skipped, c.DeadLetter, c.Duplicates, c.Gaps, c.Foreign}
			}
		}
		t.stages = append(t.stages, s)
		queued := new(atomic.Int64)
		for p := t.job.id; p < w.topology.Partitions[st.Index]; p += w.plan.Jobs {
			s.parts = append(s.parts, s.newPart(p, queued))
		}
	}
	if err := t.restoreStates(ctx); err != nil {
		return nil, err
	}
	return t.positions(ctx, log)
}

// begin makes a restored term ready to process. Start positions are resolved once: they are committed before the first record.
func (t *term) begin(offsets []joblog.Offset) error {
	w := t.job.worker
	t.view.Offsets = offsets
	if slices.ContainsFunc(t.stages, func(s *stageRun) bool { return s.plan.Swift }) {
		var err error
		if t.swift, err = kafka.OpenIdempotent(w.cluster, swiftLinger, w.topology.limit); err != nil {
			return err
		}
	}
	if err := t.record(joblog.Probe, t.allOffsets()); err != nil {
		return err
	}
	t.open = t.newEpoch()
	for i := len(t.stages) - 1; i >= 0; i-- {
		for _, p := range t.stages[i].parts {
			t.feeds = append(t.feeds, p.feeds...)
		}
	}
	for _, f := range t.feeds {
		f.sub = w.fetcher.Subscribe(f.tp, f.topic, f.position, f)
	}
	return nil
}

// swiftLinger gathers swift records into requests: without it requests load the broker more than they hasten records.
const swiftLinger = 2 * time.Millisecond

func (s *stageRun) newPart(number int32, queued *atomic.Int64) *part {
	w := s.term.job.worker
	p := &part{stage: s, number: number}
	for _, in := range s.plan.Inputs {
		top := w.topology.Topics[in.Topic]
		if number >= top.Partitions {
			continue
		}
		f := &feed{part: p, input: in, tp: kafka.TP{Topic: in.Topic, Partition: number}, topic: top.ID, queued: queued, wake: s.term.job.wake}
		if !in.Internal() {
			f.fingerprint = sourceFingerprint(w.incarnation, s.plan, in, top.ID)
		} else {
			f.frontier = dedup.NewFrontier()
			for _, print := range outputFingerprints(w.incarnation, in.Upstream, w.topology) {
				f.frontier.KnownLine(print)
			}
		}
		for _, n := range s.swiftRoutes {
			f.chains = append(f.chains, dedup.NewChain(n))
		}
		p.feeds = append(p.feeds, f)
	}
	return p
}

// sourceFingerprint names the messages that a stage makes of one source topic.
func sourceFingerprint(incarnation uint64, st *Stage, in *Input, topic [16]byte) uint64 {
	return dedup.Fingerprint(incarnation, st.Name, in.SourceName, topic, 0)
}

// stageFingerprint names the outputs of a transform.
func stageFingerprint(incarnation uint64, st *Stage) uint64 {
	return dedup.Fingerprint(incarnation, st.Name, "", [16]byte{}, 0)
}

// outputFingerprints lists what a stage's internal outputs may carry.
func outputFingerprints(incarnation uint64, st *Stage, top *Topology) []uint64 {
	out := []uint64{stageFingerprint(incarnation, st)}
	for _, in := range st.Inputs {
		if !in.Internal() {
			out = append(out, sourceFingerprint(incarnation, st, in, top.Topics[in.Topic].ID))
		}
	}
	return out
}

func (s *stageRun) addInput(in *Input) {
	var d *message.JSONDecoder
	if in.Source != nil && in.Source.Format == "json" {
		d = message.NewJSONDecoder(in.Schema)
	}
	s.decoders = append(s.decoders, d)
	if s.plan.GroupBy != nil {
		s.groupKeys = append(s.groupKeys, message.NewKeyEncoder(in.Schema, in.GroupColumns))
	}
}

// newRoutes makes a stream's ways ready; only a swift stage's records for other stages are sent outside the transaction.
func (s *stageRun) newRoutes(ways []Route, top *Topology, swift bool) []route {
	var out []route
	for _, w := range ways {
		r := route{Route: w, envelope: w.Kind == ToStage, chain: -1}
		info := top.Topics[w.Topic]
		r.targets, r.limit = info.Partitions, int(info.MaxBytes)
		if w.Kind == ToStage {
			r.targets = w.Partitions
			if swift {
				r.swift, r.chain = true, len(s.swiftRoutes)
				s.swiftRoutes = append(s.swiftRoutes, w.Partitions)
			}
		}
		if len(w.Key) > 0 {
			r.keys = message.NewKeyEncoder(w.Schema, w.Key)
		}
		if w.Kind == ToSink && w.Format == "json" {
			r.json = message.NewJSONEncoder(w.Schema)
		}
		out = append(out, r)
	}
	return out
}

// positions finds where every input goes on: the group's committed offset; if Kafka has forgotten it, the job logs'; else the
// source's start.
func (t *term) positions(ctx context.Context, log *joblog.Fold) ([]joblog.Offset, error) {
	w := t.job.worker
	committed := map[string]map[kafka.TP]int64{}
	var logs map[logKey]int64
	var out []joblog.Offset
	for _, s := range t.stages {
		for _, p := range s.parts {
			for _, f := range p.feeds {
				group := f.input.Group
				if committed[group] == nil {
					var err error
					if committed[group], err = w.cluster.Committed(ctx, group); err != nil {
						return nil, err
					}
				}
				at, ok := committed[group][f.tp]
				if !ok && log.Ready() {
					if logs == nil {
						var err error
						if logs, err = w.loggedOffsets(ctx); err != nil {
							return nil, err
						}
					}
					if at, ok = logs[logKey{s.plan.Name, f.topic, f.tp.Partition}]; ok {
						t.job.log.Warn("Kafka has forgotten a committed offset; it is taken from the job log", "topic", f.tp.Topic, "partition", f.tp.Partition, "offset", at)
					}
				}
				if !ok {
					var err error
					if at, err = w.startOf(ctx, f); err != nil {
						return nil, err
					}
				}
				f.position, f.sealed = at, at
				out = append(out, joblog.Offset{Stage: s.plan.Name, Topic: f.tp.Topic, TopicID: f.topic, Partition: f.tp.Partition, Offset: at})
			}
		}
	}
	return out, nil
}

type logKey struct {
	stage     string
	topic     [16]byte
	partition int32
}

// loggedOffsets are the newest offsets that any job log repeats.
func (w *Worker) loggedOffsets(ctx context.Context) (map[logKey]int64, error) {
	out := map[logKey]int64{}
	for k := range w.topology.Topics[spec.JobsTopic(w.plan.Pipeline)].Partitions {
		fold, err := readJobLog(ctx, w.cluster, w.plan.Pipeline, k, false)
		if err != nil {
			return nil, err
		}
		for _, o := range fold.View().Offsets {
			key := logKey{o.Stage, o.TopicID, o.Partition}
			out[key] = max(out[key], o.Offset)
		}
	}
	return out, nil
}

// startOf resolves where an input without any committed offset begins.
func (w *Worker) startOf(ctx context.Context, f *feed) (int64, error) {
	if f.input.Internal() {
		return w.cluster.Start(ctx, f.tp)
	}
	switch start := f.input.Source.Start; start {
	case "", "earliest":
		return w.cluster.Start(ctx, f.tp)
	case "latest":
		return w.cluster.End(ctx, f.tp, true)
	default:
		at, err := time.Parse(time.RFC3339, start)
		if err != nil {
			return 0, fmt.Errorf("source %s: start %q: %w", f.input.SourceName, start, err)
		}
		return w.cluster.After(ctx, f.tp, at.UnixMilli())
	}
}

// restoreParallel is how many partitions of a job are restored at a time.
const restoreParallel = 4

func (t *term) restoreStates(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	slots := make(chan struct{}, restoreParallel)
	for _, s := range t.stages {
		if s.plan.StateTopic == "" {
			continue
		}
		for _, p := range s.parts {
			wg.Add(1)
			slots <- struct{}{}
			go func() {
				defer func() { <-slots; wg.Done() }()
				if err := p.restore(ctx); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					cancel()
				}
			}()
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// restore brings the partition's local copy to the end of its changelog. The bound is the read-uncommitted end, taken after fencing.
func (p *part) restore(ctx context.Context) error {
	s := p.stage
	w := s.term.job.worker
	began := time.Now()
	h, err := w.store.Acquire(statePartition(w.plan, s.plan, p.number))
	if err != nil {
		return fmt.Errorf("local store, stage %s partition %d: %w", s.plan.Name, p.number, err)
	}
	var decls []functions.StateDecl
	for _, n := range s.nodes {
		decls = append(decls, n.function.States()...)
	}
	p.state = newPartitionState(h, decls, w.cacheLimit())
	tp := kafka.TP{Topic: s.plan.StateTopic, Partition: p.number}
	from, bound, why, err := p.usable(ctx, h, tp)
	if err != nil {
		return err
	}
	if why != "" {
		if err := h.Clear(); err != nil {
			return fmt.Errorf("local store, %v: %w", tp, err)
		}
	}
	replayed, err := p.replay(ctx, h, tp, from, bound)
	if err != nil {
		return err
	}
	if err := p.recall(h); err != nil {
		return fmt.Errorf("local store, %v: %w", tp, err)
	}
	s.term.job.log.Info("job restored", "stage", s.plan.Name, "partition", p.number, "replayed", replayed, "from", from, "to", bound, "rebuilt", why, "seconds", time.Since(began).Seconds())
	return nil
}

// statePartition names a stage partition in the local store.
func statePartition(p *Plan, st *Stage, number int32) statestore.PartitionID {
	return statestore.PartitionID{Stage: p.Pipeline + "." + st.Name, Partition: number}
}

// usable tells from which offset the local copy goes on, and why it has to be rebuilt if it has.
func (p *part) usable(ctx context.Context, h statestore.Handle, tp kafka.TP) (from, bound int64, why string, err error) {
	w := p.stage.term.job.worker
	start, err := w.cluster.Start(ctx, tp)
	if err != nil {
		return 0, 0, "", err
	}
	if bound, err = w.cluster.End(ctx, tp, false); err != nil {
		return 0, 0, "", err
	}
	pos, ok, err := h.Position()
	if err != nil {
		return 0, 0, "", fmt.Errorf("local store, %v: %w", tp, err)
	}
	switch {
	case !ok:
		return start, bound, "no local copy", nil
	case pos.Topic != w.topology.Topics[tp.Topic].ID:
		return start, bound, "the changelog topic was recreated", nil
	case pos.Incarnation != w.incarnation:
		return start, bound, "the pipeline was reset", nil
	case pos.Offset < start:
		return start, bound, "the changelog begins behind the local copy", nil
	case pos.Offset > bound:
		return start, bound, "the local copy is ahead of the changelog's end", nil
	case time.Since(time.UnixMilli(pos.AtEnd)) > w.topology.Topics[tp.Topic].CopyLife:
		return start, bound, fmt.Sprintf("the local copy was last complete at %s: deleted keys could come back", time.UnixMilli(pos.AtEnd).UTC().Format(time.RFC3339)), nil
	}
	return pos.Offset, bound, "", nil
}

// replay applies the changelog from one offset to another, read committed, completion by position.
func (p *part) replay(ctx context.Context, h statestore.Handle, tp kafka.TP, from, bound int64) (int64, error) {
	w := p.stage.term.job.worker
	pos := statestore.Position{Topic: w.topology.Topics[tp.Topic].ID, Incarnation: w.incarnation, Offset: from, AtEnd: time.Now().UnixMilli()}
	var replayed int64
	shown := time.Now()
	err := w.cluster.ReadTo(ctx, tp, from, bound, func(records []*kgo.Record, next int64) error {
		changes := make([]statestore.Change, 0, len(records))
		for _, r := range records {
			changes = append(changes, statestore.Change{Key: r.Key, Value: r.Value})
		}
		replayed += int64(len(records))
		pos.Offset = next
		if err := h.Apply(lastOfEach(changes), pos); err != nil {
			return fmt.Errorf("local store, %v: %w", tp, err)
		}
		p.stage.term.job.progress.Add(1)
		if time.Since(shown) > 2*time.Second {
			shown = time.Now()
			p.stage.term.job.log.Info("restoring", "stage", p.stage.plan.Name, "partition", p.number, "offset", next, "to", bound, "replayed", replayed)
		}
		return nil
	})
	if err != nil {
		return replayed, err
	}
	// Where nothing was to be read, the copy is complete all the same: note when that was seen.
	return replayed, h.Apply(nil, pos)
}

// lastOfEach sorts changes by key and keeps the newest of each.
func lastOfEach(changes []statestore.Change) []statestore.Change {
	slices.SortStableFunc(changes, func(a, b statestore.Change) int { return bytes.Compare(a.Key, b.Key) })
	out := changes[:0]
	for i := range changes {
		if i+1 < len(changes) && bytes.Equal(changes[i].Key, changes[i+1].Key) {
			continue
		}
		out = append(out, changes[i])
	}
	return out
}

// recall reads what is not the function's state: frontier and running number.
func (p *part) recall(h statestore.Handle) error {
	var failed error
	take := func(each func(key, payload []byte) error) func(key, value []byte) bool {
		return func(key, value []byte) bool {
			_, _, k, err := statestore.ParseKey(key)
			if err == nil {
				var payload []byte
				if _, payload, err = statestore.ParseValue(value); err == nil {
					err = each(k, payload)
				}
			}
			failed = err
			return err == nil
		}
	}
	for _, f := range p.feeds {
		if f.frontier == nil {
			continue
		}
		if err := h.Scan(statestore.AppendKey(nil, statestore.KindFrontier, f.input.Stream, nil), take(f.frontier.Load)); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
	}
	err := h.Scan(statestore.AppendKey(nil, statestore.KindRunningNumber, "", nil), take(func(_, payload []byte) (err error) {
		p.running, err = parseRunning(payload)
		p.numbered = p.running
		return err
	}))
	return errors.Join(err, failed)
}

// limit is the largest batch that a topic takes, for the clients.
func (t *Topology) limit(topic string) int32 {
	if info, ok := t.Topics[topic]; ok {
		return info.MaxBytes
	}
	return 1000012
}

// partitionsOf is a topic's number of partitions.
func (t *term) partitions(topic string) int32 { return t.job.worker.topology.Topics[topic].Partitions }
