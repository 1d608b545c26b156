package processor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/epoch"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore"
)

// Options are how a worker runs.
type Options struct {
	Spec          *spec.Spec
	Kafka         []kgo.Opt   // how to reach the cluster
	Addresses     []string    // for messages
	Name          string      // the worker's identity: its group.instance.id
	Data          string      // folder for local state, already locked by the caller
	Leave         func() bool // asked when ending: leave the group, or keep the jobs reserved for a restart
	CreateSources bool        // create missing source topics: with the embedded broker
	OpenStore     func(dir string) (statestore.Store, error)
	Log           *slog.Logger
	Metrics       *Metrics
	Stalled       func(error) // ends the process: a process function hangs and cannot be stopped
}

// Worker is one process's share of a pipeline.
type Worker struct {
	opt         Options
	name        string
	log         *slog.Logger
	plan        *Plan
	topology    *Topology
	cluster     *kafka.Cluster
	fetcher     *kafka.Fetcher
	store       statestore.Store
	pacer       *epoch.Pacer
	metrics     *Metrics
	generation  uint64
	incarnation uint64

	heartbeat atomic.Int64 // when the newest answered heartbeat was sent, Unix nanoseconds

	mu      sync.Mutex
	jobs    map[int32]*runningJob
	leaving error
	left    chan struct{} // closed by leave
	again   chan struct{} // gets something when the topics have to be looked at again
	state   atomic.Pointer[control.State]
	ready   atomic.Bool
	// nameTaken says that a newer process has this worker's name: the membership is not ours to give up.
	nameTaken atomic.Bool
}

type runningJob struct {
	*job
	cancel context.CancelFunc
}

// ErrLeft is wrapped by the error of a worker that had to leave.
var ErrLeft = errors.New("worker left the group")

// Run works until ctx ends, which is a clean stop, or until it has to leave.
func Run(ctx context.Context, o Options) error {
	w := &Worker{again: make(chan struct{}, 1), opt: o, name: o.Name, log: o.Log, metrics: o.Metrics, jobs: map[int32]*runningJob{}}
	if w.metrics == nil {
		w.metrics = NewMetrics()
	}
	w.metrics.worker.Store(w)
	var err error
	if w.cluster, err = kafka.Open(ctx, o.Kafka); err != nil {
		return err
	}
	defer w.cluster.Close()
	if w.store, err = o.OpenStore(filepath.Join(o.Data, "state")); err != nil {
		return fmt.Errorf("local state in %s: %w", o.Data, err)
	}
	defer w.store.Close()
	if w.fetcher, err = kafka.NewFetcher(w.cluster, kafka.FetcherOptions{Rack: o.Spec.Kafka.Rack}); err != nil {
		return err
	}
	defer w.fetcher.Close()
	for ctx.Err() == nil {
		if err := w.follow(ctx); errors.Is(err, errCompleted) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// errCompleted ends a worker whose pipeline has nothing left to do.
var errCompleted = errors.New("the pipeline is completed")

// follow runs the pipeline under one state of control, and returns when that changes or ctx ends.
func (w *Worker) follow(ctx context.Context) error {
	state, next, err := w.adopt(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	w.state.Store(&state)
	changed, unwatch := w.watchControl(next)
	defer unwatch()
	switch state.Run {
	case control.Running:
	case control.Completed:
		w.log.Info("the pipeline is completed", "since", when(state.Since))
		return errCompleted
	default:
		w.log.Warn("the pipeline does not run; this worker waits", "run", string(state.Run), "since", when(state.Since),
			"hint", "processor start "+w.opt.Spec.Pipeline)
		select {
		case <-ctx.Done():
		case <-changed:
		}
		return nil
	}
	return w.work(ctx, state, changed)
}

// work is follow for a pipeline that runs.
func (w *Worker) work(ctx context.Context, state control.State, changed <-chan struct{}) error {
	w.generation = state.Generation
	var err error
	if w.incarnation, err = strconv.ParseUint(state.Incarnation, 16, 64); err != nil {
		return fmt.Errorf("control: incarnation id %q: %w", state.Incarnation, err)
	}
	if err := w.sameTopics(state); err != nil {
		return err
	}
	w.pacer = epoch.NewPacer(w.plan.Spec.Epoch.Pace)
	w.leaving, w.left = nil, make(chan struct{})
	g, err := w.join()
	if err != nil {
		return err
	}
	stopDog := w.watchdog()
	defer stopDog()
	w.ready.Store(true)
	defer w.ready.Store(false)
	select {
	case <-ctx.Done():
		w.log.Info("stopping: finishing epochs")
	case <-changed:
		w.log.Info("control has changed: dropping all terms")
		g.leaveOnEnd = true
	case <-w.again:
		w.log.Warn("a topic refuses what it took before: looking at all topics again")
		pause(ctx, time.Second)
	case <-w.left:
		g.leaveOnEnd = !w.nameTaken.Load()
	}
	g.leaveOnEnd = !w.nameTaken.Load() && (g.leaveOnEnd || w.opt.Leave != nil && w.opt.Leave())
	w.stopJobs(nil)
	g.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leaving
}

// leave ends the worker with a reason; its jobs go to others.
func (w *Worker) leave(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving == nil {
		w.leaving = fmt.Errorf("%w: %w", ErrLeft, why)
		close(w.left)
	}
}

// lookAgain makes the worker check all topics anew: one has vanished, or its limits have changed.
func (w *Worker) lookAgain() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// startJob begins to work for a job that the group assigned.
func (w *Worker) startJob(id int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[id] != nil || id >= w.plan.Jobs {
		return
	}
	j := &job{worker: w, id: id, log: w.log.With("job", id), wakeup: make(chan struct{}, 1), events: make(chan jobEvent, 8), quit: make(chan struct{}), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	w.jobs[id] = &runningJob{j, cancel}
	go j.drive(ctx, w.generation)
}

// stopJobs ends the given jobs, all of them for nil, and waits until nothing of them can act any more.
func (w *Worker) stopJobs(ids []int32) {
	w.mu.Lock()
	var ending []*runningJob
	if ids == nil {
		for id := range w.jobs {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if j := w.jobs[id]; j != nil {
			ending = append(ending, j)
		}
	}
	w.mu.Unlock()
	for _, j := range ending {
		j.cancel()
	}
	for _, j := range ending {
		<-j.ended
	}
	w.mu.Lock()
	for _, j := range ending {
		delete(w.jobs, j.id)
	}
	w.mu.Unlock()
}

// adopt reads control, creating the pipeline if there is none, and plans what it says. It waits for missing source topics.
func (w *Worker) adopt(ctx context.Context) (control.State, int64, error) {
	for told := false; ; {
		s, next, found, err := readControlAt(ctx, w.cluster, w.opt.Spec.Pipeline, false)
		if err == nil && found {
			err = w.planFrom(s)
		} else if err == nil {
			plan, faults := NewPlan(w.opt.Spec)
			if err := firstFault(faults); err != nil {
				return s, 0, err
			}
			w.plan = plan
		}
		if err == nil {
			w.topology, err = w.plan.Ensure(ctx, w.cluster, EnsureOptions{Replication: w.opt.Spec.Kafka.ReplicationFactor, CreateSources: w.opt.CreateSources, Brokers: w.opt.Addresses})
		}
		switch {
		case errors.Is(err, ErrSourceMissing):
			if !told {
				w.log.Warn("waiting for a source", "error", w.opt.Spec.RedactText(err.Error()))
				told = true
			}
			pause(ctx, time.Second)
		case err != nil:
			return s, 0, err
		case found:
			return s, next, nil
		default:
			if err := w.create(ctx); err != nil {
				return s, 0, err
			}
		}
		if ctx.Err() != nil {
			return s, 0, nil
		}
	}
}

func firstFault(faults []spec.Fault) error {
	var errs []error
	for _, f := range faults {
		if !f.Warning {
			errs = append(errs, errors.New(f.String()))
		}
	}
	return errors.Join(errs...)
}

// ErrDifferentSpec says that control holds another spec than the file.
var ErrDifferentSpec = errors.New("the spec file differs from what the pipeline runs")

// planFrom plans what control holds: control wins over files.
func (w *Worker) planFrom(s control.State) error {
	file := string(w.opt.Spec.Normalised())
	if file != s.Spec {
		return fmt.Errorf("%w (- control, + file):\n%s\nthe pipeline goes on with what control holds; run the file under another pipeline name, or undo the change", ErrDifferentSpec, difference(s.Spec, file))
	}
	plan, faults := NewPlan(w.opt.Spec)
	w.plan = plan
	return firstFault(faults)
}

// create writes the first state of a pipeline. A race is settled by control's compare-and-set: the loser reads again.
func (w *Worker) create(ctx context.Context) error {
	topics := map[string]string{}
	for name, t := range w.topology.Topics {
		topics[name] = hex.EncodeToString(t.ID[:])
	}
	schemas := map[string]string{}
	for i := range w.plan.Spec.Streams {
		e := &w.plan.Spec.Streams[i]
		if s, err := schemaOf(e.Value.Schema); err == nil {
			schemas[e.Name] = fmt.Sprintf("%016x", s.Fingerprint())
		}
	}
	lines := map[string]uint32{}
	for _, st := range w.plan.Stages {
		if st.Swift {
			lines[st.Name] = 0
		}
	}
	first := control.State{Incarnation: fmt.Sprintf("%016x", rand.Uint64()), Jobs: w.plan.Jobs, Spec: string(w.opt.Spec.Normalised()), DynamicVersion: 1,
		Topics: topics, Schemas: schemas, Lines: lines}
	c := Commander{Cluster: w.cluster, Pipeline: w.plan.Pipeline}
	r, err := c.Run(ctx, control.Create, control.Params{By: CommandName("run"), Now: time.Now().UnixMilli(), State: first})
	if err != nil {
		return err
	}
	if r.Kind == control.Refusal {
		return fmt.Errorf("pipeline %s could not be created: %s", w.plan.Pipeline, r.Reason)
	}
	w.log.Info("pipeline created", "pipeline", w.plan.Pipeline, "generation", r.State.Generation, "incarnation", r.State.Incarnation)
	return nil
}

// CommandName is a unique name for a command: what, host, process and a random number.
func CommandName(what string) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s@%s/%d/%08x", what, host, os.Getpid(), rand.Uint32())
}

// sameTopics refuses to go on with a topic that was deleted and made again: offsets and state mean nothing there.
func (w *Worker) sameTopics(s control.State) error {
	var errs []error
	for name, id := range s.Topics {
		if t, ok := w.topology.Topics[name]; ok && hex.EncodeToString(t.ID[:]) != id {
			errs = append(errs, fmt.Errorf("topic %s was deleted and made again since the pipeline was created: its old offsets mean nothing there; run the spec under another pipeline name to begin anew", name))
		}
	}
	return errors.Join(errs...)
}

// watchControl closes changed when control gets another record behind next.
func (w *Worker) watchControl(next int64) (changed <-chan struct{}, unwatch func()) {
	t := &controlTaker{changed: make(chan struct{})}
	name := spec.ControlTopic(w.opt.Spec.Pipeline)
	sub := w.fetcher.Subscribe(kafka.TP{Topic: name}, w.topology.Topics[name].ID, next, t)
	return t.changed, func() { w.fetcher.Unsubscribe(sub) }
}

type controlTaker struct {
	once    sync.Once
	changed chan struct{}
}

// Ready is kafka.Taker's.
func (t *controlTaker) Ready() bool { return true }

// Take is kafka.Taker's.
func (t *controlTaker) Take(b kafka.Batch) {
	if len(b.Records) > 0 || b.Err != nil {
		t.once.Do(func() { close(t.changed) })
	}
}

// heartbeatAfter waits for an answered heartbeat that was sent after t.
func (w *Worker) heartbeatAfter(ctx context.Context, t time.Time) bool {
	for w.heartbeat.Load() <= t.UnixNano() {
		if ctx.Err() != nil {
			return false
		}
		pause(ctx, 50*time.Millisecond)
	}
	return true
}

// cacheLimit is the weight of decoded state that one stage partition may keep in memory.
func (w *Worker) cacheLimit() int {
	parts := 0
	for _, st := range w.plan.Stages {
		if st.StateTopic != "" {
			parts += int(w.topology.Partitions[st.Index])
		}
	}
	return max(1<<20, int(w.plan.Spec.JobTracker.StateCache.Uncompressed)/max(parts, 1))
}

// epochMemory is what all epochs of a worker together may hold in memory, open and being sent, in bytes.
const epochMemory = 64 << 20

// epochBytes is the size at which a job's open epoch takes no more: the spec's, or a job's share of epochMemory if that is less.
func (w *Worker) epochBytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(int64(w.plan.Spec.Epoch.MaxBytes), max(1<<20, epochMemory/int64(2*max(1, len(w.jobs)))))
}

// trim deletes consumed records in the background, one request at a time for a job.
func (w *Worker) trim(j *job, below map[kafka.TP]int64) {
	if !j.trimming.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer j.trimming.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.cluster.Trim(ctx, below); err != nil {
			j.log.Warn("consumed records could not be deleted; tried again later", "error", err)
		}
	}()
}

func when(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }
