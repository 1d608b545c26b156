package processor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore"
	"github.com/kafka-processor/processor/statestore/memory"
)

// cluster is an embedded Kafka with a client of the test's own, which shares nothing with the code under test.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	broker *kfake.Cluster
	client *kgo.Client
	admin  *kadm.Client
	kafka  *kafka.Cluster // for reports and commands
}

// newCluster starts a broker with topics, given as name and partitions. Everything ends with the test, or after a minute.
func newCluster(t *testing.T, topics map[string]int32) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.DefaultNumPartitions(2), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}
	for name, n := range topics {
		opts = append(opts, kfake.SeedTopics(n, name))
	}
	b, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	c := &cluster{t: t, ctx: ctx, broker: b}
	if c.client, err = kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(20*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	c.admin = kadm.NewClient(c.client)
	if c.kafka, err = kafka.Open(ctx, c.options(nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kafka.Close)
	return c
}

func (c *cluster) options(w *wire) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(c.broker.ListenAddrs()...), kgo.MetadataMinAge(20 * time.Millisecond)}
	if w != nil {
		opts = append(opts, kgo.Dialer(w.dial))
	}
	return opts
}

// eventually waits until ok, which is asked again and again, tells true; else it fails with what ok tells last.
func (c *cluster) eventually(what string, ok func() (bool, string)) {
	c.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, last := ok()
		if done {
			return
		}
		select {
		case <-c.ctx.Done():
			c.t.Fatalf("%s did not come: %s", what, last)
		case <-tick.C:
		}
	}
}

// produce writes values to one partition, in order.
func (c *cluster) produce(topic string, partition int32, values ...string) {
	c.t.Helper()
	var rs []*kgo.Record
	for _, v := range values {
		rs = append(rs, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)})
	}
	if err := c.client.ProduceSync(c.ctx, rs...).FirstErr(); err != nil {
		c.t.Fatalf("produce to %s: %v", topic, err)
	}
}

// ends are a topic's ends of what a read-committed reader gets.
func (c *cluster) ends(topic string) map[int32]int64 {
	c.t.Helper()
	got, err := c.admin.ListCommittedOffsets(c.ctx, topic)
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[int32]int64{}
	got.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
	return out
}

// read returns all records that a read-committed consumer gets of a topic, up to its present end, by partition in order.
func (c *cluster) read(topic string) map[int32][]*kgo.Record {
	c.t.Helper()
	ends, starts := c.ends(topic), map[int32]kgo.Offset{}
	first, err := c.admin.ListStartOffsets(c.ctx, topic)
	if err != nil {
		c.t.Fatal(err)
	}
	first.Each(func(o kadm.ListedOffset) {
		if o.Offset < ends[o.Partition] {
			starts[o.Partition] = kgo.NewOffset().At(o.Offset)
		}
	})
	out := map[int32][]*kgo.Record{}
	if len(starts) == 0 {
		return out
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.broker.ListenAddrs()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(20*time.Millisecond), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	for len(starts) > 0 {
		f := cl.PollFetches(c.ctx)
		if err := f.Err(); err != nil {
			c.t.Fatalf("read %s: %v", topic, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			if r.Offset < ends[r.Partition] && !r.Attrs.IsControl() {
				out[r.Partition] = append(out[r.Partition], r)
			}
			if r.Offset >= ends[r.Partition]-1 { // a marker, or the last record of a log without transactions
				delete(starts, r.Partition)
			}
		})
	}
	return out
}

// consumed waits until the pipeline has committed the ends of these topics, each as it is when the one before it was consumed.
func (c *cluster) consumed(group string, topics ...string) {
	c.t.Helper()
	for _, topic := range topics {
		c.eventually(topic+" consumed", func() (bool, string) {
			at, err := c.admin.FetchOffsets(c.ctx, group)
			if err != nil {
				return false, err.Error()
			}
			var missing []string
			for p, end := range c.ends(topic) {
				o, ok := at.Lookup(topic, p)
				if end > 0 && (!ok || o.At < end) {
					missing = append(missing, fmt.Sprintf("partition %d at %d of %d", p, o.At, end))
				}
			}
			return len(missing) == 0, strings.Join(missing, ", ")
		})
	}
}

// worker is one running worker of a test.
type worker struct {
	c       *cluster
	name    string
	metrics *Metrics
	wire    *wire
	disk    *memory.Disk
	journal *journal
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // of Run, once done is closed
}

// start runs a worker until stop, or the end of the test.
func (c *cluster) start(text, name string, change ...func(*Options)) *worker {
	c.t.Helper()
	s, faults := spec.Parse(name, []byte(text))
	if s == nil || spec.Refused(faults) {
		c.t.Fatal(faults)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{c: c, name: name, metrics: NewMetrics(), wire: newWire(), disk: memory.NewDisk(), journal: &journal{}, cancel: cancel, done: make(chan struct{})}
	o := Options{Spec: s, Kafka: c.options(w.wire), Addresses: c.broker.ListenAddrs(), Name: name, Leave: func() bool { return true }, Metrics: w.metrics,
		OpenStore: func(string) (statestore.Store, error) { return w.disk.Open() },
		Log:       slog.New(slog.NewTextHandler(w.journal, nil)), Stalled: func(err error) { c.t.Errorf("stalled: %v", err) }}
	for _, f := range change {
		f(&o)
	}
	go func() {
		defer close(w.done)
		w.err = Run(ctx, o)
	}()
	c.t.Cleanup(func() {
		w.wire.decide(nil)
		w.wire.mend()
		w.cancel()
		<-w.done
		if c.t.Failed() {
			c.t.Logf("log of worker %s:\n%s", name, w.journal)
		}
	})
	return w
}

// stop ends the worker cleanly.
func (w *worker) stop() {
	w.c.t.Helper()
	w.cancel()
	<-w.done
	if w.err != nil {
		w.c.t.Fatalf("worker %s: %v", w.name, w.err)
	}
}

// ended waits until the worker has ended by itself, or was told to.
func (w *worker) ended() {
	w.c.t.Helper()
	select {
	case <-w.done:
	case <-w.c.ctx.Done():
		w.c.t.Fatalf("worker %s goes on", w.name)
	}
}

func (w *worker) jobs() []JobStatus {
	if r := w.metrics.worker.Load(); r != nil {
		return r.Jobs()
	}
	return nil
}

// holds waits until the worker runs exactly n jobs.
func (w *worker) holds(n int) {
	w.c.t.Helper()
	w.c.eventually(fmt.Sprintf("worker %s with %d jobs", w.name, n), func() (bool, string) {
		running := 0
		for _, j := range w.jobs() {
			if j.Phase == "running" && j.Term > 0 {
				running++
			}
		}
		return running == n && len(w.jobs()) == n, fmt.Sprintf("%+v", w.jobs())
	})
}

// term waits until the worker runs a job in a term of at least this number, and returns it.
func (w *worker) term(job int32, least uint64) (term uint64) {
	w.c.t.Helper()
	w.c.eventually(fmt.Sprintf("job %d in term %d", job, least), func() (bool, string) {
		for _, j := range w.jobs() {
			if j.ID == job && j.Phase == "running" && j.Term >= least {
				term = j.Term
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", w.jobs())
	})
	return term
}

// stats adds up the published statistics of a stage at this worker.
func (w *worker) stat(stage string, of func(JobStatus, int) uint64) (n uint64) {
	for _, j := range w.jobs() {
		for i := range j.Stats {
			if j.Stats[i].Stage == stage {
				n += of(j, i)
			}
		}
	}
	return n
}

// journal keeps a worker's log for the test.
type journal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write is io.Writer's.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.Write(b)
}

// String is fmt.Stringer's.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.String()
}

// count tells how many lines have all of the words.
func (j *journal) count(words ...string) (n int) {
	for l := range strings.Lines(j.String()) {
		has := true
		for _, w := range words {
			has = has && strings.Contains(l, w)
		}
		if has {
			n++
		}
	}
	return n
}

// saw waits for at least n lines with all of the words.
func (w *worker) saw(n int, words ...string) {
	w.c.t.Helper()
	w.c.eventually(fmt.Sprintf("%d times %q in the log of %s", n, words, w.name), func() (bool, string) {
		got := w.journal.count(words...)
		return got >= n, fmt.Sprintf("%d times", got)
	})
}

// storeOn opens the disk of another worker, which has ended.
func storeOn(w *worker) func(string) (statestore.Store, error) {
	return func(string) (statestore.Store, error) { return w.disk.Open() }
}
