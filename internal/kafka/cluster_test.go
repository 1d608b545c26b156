package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// ground is an embedded broker with the cluster under test and a plain client of the test's own.
type ground struct {
	t      *testing.T
	ctx    context.Context
	broker *kfake.Cluster
	c      *Cluster
	client *kgo.Client
}

func newGround(t *testing.T, opts ...kfake.Opt) *ground {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	b, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(2, "log", "more")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	g := &ground{t: t, ctx: ctx, broker: b}
	seed := []kgo.Opt{kgo.SeedBrokers(b.ListenAddrs()...), kgo.MetadataMinAge(20 * time.Millisecond)}
	if g.c, err = Open(ctx, seed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.c.Close)
	if g.client, err = kgo.NewClient(append(slices.Clone(seed), kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.client.Close)
	return g
}

func (g *ground) produce(tp TP, values ...string) {
	g.t.Helper()
	for _, v := range values {
		if err := g.client.ProduceSync(g.ctx, &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Value: []byte(v)}).FirstErr(); err != nil {
			g.t.Fatal(err)
		}
	}
}

// abandoned leaves a transaction open that has written these values; end aborts it.
func (g *ground) abandoned(id string, tp TP, values ...string) (end func()) {
	g.t.Helper()
	cl, err := kgo.NewClient(g.c.Options(kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := cl.BeginTransaction(); err != nil {
		g.t.Fatal(err)
	}
	for _, v := range values {
		if err := cl.ProduceSync(g.ctx, &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Value: []byte(v)}).FirstErr(); err != nil {
			g.t.Fatal(err)
		}
	}
	g.t.Cleanup(cl.Close)
	return func() {
		if err := cl.EndTransaction(g.ctx, kgo.TryAbort); err != nil {
			g.t.Error(err)
		}
	}
}

// readTo collects what ReadTo hands over.
func (g *ground) readTo(tp TP, from, bound int64) (values []string, next int64, err error) {
	next = from
	err = g.c.ReadTo(g.ctx, tp, from, bound, func(rs []*kgo.Record, at int64) error {
		for _, r := range rs {
			values = append(values, string(r.Value))
		}
		next = at
		return nil
	})
	return values, next, err
}

var log0 = TP{"log", 0}

// Completion is by position: a log may end in aborted records and markers, or have nothing but a start.
func TestReadToEndsByPositionNotByRecord(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.produce(log0, "a", "b")
	g.abandoned("x", log0, "never", "never")()
	end, err := g.c.End(g.ctx, log0, false)
	if err != nil || end != 5 {
		t.Fatalf("end %d, %v", end, err)
	}
	if got, next, err := g.readTo(log0, 0, end); err != nil || next != 5 || fmt.Sprint(got) != "[a b]" {
		t.Errorf("%v up to %d, %v", got, next, err)
	}
	if err := g.c.Trim(g.ctx, map[TP]int64{log0: 5}); err != nil {
		t.Fatal(err)
	}
	start, err := g.c.Start(g.ctx, log0)
	if err != nil || start != 5 {
		t.Fatalf("start %d, %v", start, err)
	}
	if got, _, err := g.readTo(log0, start, end); err != nil || len(got) != 0 {
		t.Errorf("empty log: %v, %v", got, err)
	}
}

// The bound is the read-uncommitted end: ReadTo waits for a transaction that is still open instead of ending before it.
func TestReadToWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.produce(log0, "a")
	end := g.abandoned("x", log0, "never")
	g.produce(log0, "b")
	bound, err := g.c.End(g.ctx, log0, false)
	if err != nil {
		t.Fatal(err)
	}
	if stable, err := g.c.End(g.ctx, log0, true); err != nil || stable != 1 || bound != 3 {
		t.Fatalf("stable end %d, end %d, %v", stable, bound, err)
	}
	fetched := g.broker.Fault(kfake.Fault{Keys: fetchKeys, Observe: true, Count: -1})
	type result struct {
		values []string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		v, _, err := g.readTo(log0, 0, bound)
		done <- result{v, err}
	}()
	if err := fetched.Wait(g.ctx, 4); err != nil { // it asks again and again
		t.Fatal(err)
	}
	select {
	case r := <-done:
		t.Fatalf("it did not wait: %+v", r)
	default:
	}
	end()
	if r := <-done; r.err != nil || fmt.Sprint(r.values) != "[a b]" {
		t.Errorf("%+v", r)
	}
}

func TestReadToEndsWithItsContextAndWithLostData(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.produce(log0, "a", "b", "c")
	if err := g.c.Trim(g.ctx, map[TP]int64{log0: 2}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.readTo(log0, 0, 3); !errors.Is(err, kerr.OffsetOutOfRange) {
		t.Errorf("below the start: %v", err)
	}
	short, cancel := context.WithTimeout(g.ctx, 50*time.Millisecond)
	defer cancel()
	err := g.c.ReadTo(short, log0, 3, 99, func([]*kgo.Record, int64) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a bound that never comes: %v", err)
	}
	wrong := errors.New("wrong")
	if err := g.c.ReadTo(g.ctx, log0, 2, 3, func([]*kgo.Record, int64) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("the reader's error: %v", err)
	}
}

func TestOffsetsByTimeAndMissingTopics(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for i := range int64(3) {
		r := &kgo.Record{Topic: "log", Timestamp: time.UnixMilli(1000 * (i + 1)), Value: []byte("v")}
		if err := g.client.ProduceSync(g.ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for millis, want := range map[int64]int64{500: 0, 1000: 0, 1001: 1, 3000: 2, 3001: 3} {
		if got, err := g.c.After(g.ctx, log0, millis); err != nil || got != want {
			t.Errorf("after %d ms: offset %d, %v, want %d", millis, got, err, want)
		}
	}
	if _, err := g.c.Topic(g.ctx, "none", true); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("missing topic: %v", err)
	}
	if _, err := g.c.Topics(g.ctx, "log", "none"); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("one missing topic of two: %v", err)
	}
	if got, err := g.c.Committed(g.ctx, "no-such-group"); err != nil || len(got) != 0 {
		t.Errorf("a group that never was: %v, %v", got, err)
	}
}

// I2: records of several partitions and offsets of several groups become visible together, and each record learns its offset.
// Both protocols of transactions do the same.
func TestCommitShowsRecordsAndOffsetsTogether(t *testing.T) {
	t.Parallel()
	old := kversion.V3_6_0()
	for name, opts := range map[string][]kfake.Opt{"protocol 2": nil, "protocol 1": {kfake.MaxVersions(old)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, opts...)
			if want := map[string]int16{"protocol 2": 2, "protocol 1": 1}[name]; g.c.Protocol != want {
				t.Fatalf("protocol %d, want %d", g.c.Protocol, want)
			}
			txn := g.open("job")
			defer txn.Close()
			for n := range int64(3) {
				rs := []*kgo.Record{{Topic: "log", Value: []byte("1")}, {Topic: "log", Partition: 1, Value: []byte("2")}, {Topic: "log", Value: []byte("3")}}
				err := txn.Commit(rs, []Offsets{{Group: "g1", At: map[TP]int64{{"more", 0}: 10 + n, {"more", 1}: 20 + n}}, {Group: "g2", At: map[TP]int64{log0: n}}, {Group: "g3"}})
				if err != nil {
					t.Fatal(err)
				}
				if rs[0].Offset != n*3 || rs[2].Offset != n*3+1 || rs[1].Offset != n*2 {
					t.Errorf("offsets %d %d and %d", rs[0].Offset, rs[2].Offset, rs[1].Offset)
				}
				at, err := g.c.Committed(g.ctx, "g1")
				if err != nil || at[TP{"more", 0}] != 10+n || at[TP{"more", 1}] != 20+n {
					t.Errorf("g1: %v, %v", at, err)
				}
				if at, err = g.c.Committed(g.ctx, "g2"); err != nil || at[log0] != n {
					t.Errorf("g2: %v, %v", at, err)
				}
			}
			if err := txn.Commit([]*kgo.Record{{Topic: "log", Value: []byte("4")}}, nil); err != nil {
				t.Errorf("without offsets: %v", err)
			}
			if got, _, err := g.readTo(log0, 0, 11); err != nil || fmt.Sprint(got) != "[1 3 1 3 1 3 4]" {
				t.Errorf("log %v, %v", got, err)
			}
		})
	}
}

func (g *ground) open(id string) *Transactional {
	g.t.Helper()
	txn, err := OpenTransactional(g.ctx, g.c, id, 3*time.Second, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return txn
}

// I1: whoever opens the id after it fences a holder, also one that has just produced; nothing of that transaction is ever visible,
// records or offsets, and the step of the first error is told.
func TestOpenFencesTheEarlierHolder(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	first := g.open("job")
	defer first.Close()
	if err := first.Commit([]*kgo.Record{{Topic: "log", Value: []byte("first")}}, nil); err != nil {
		t.Fatal(err)
	}
	second := g.open("job")
	defer second.Close()
	err := first.Commit([]*kgo.Record{{Topic: "log", Value: []byte("zombie")}}, []Offsets{{Group: "g", At: map[TP]int64{log0: 5}}})
	var se *StepError
	if !errors.As(err, &se) || se.Step == StepEnd {
		t.Fatalf("the fenced holder: %v", err)
	}
	if err := second.Commit([]*kgo.Record{{Topic: "log", Value: []byte("second")}}, nil); err != nil {
		t.Fatal(err)
	}
	end, err := g.c.End(g.ctx, log0, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := g.readTo(log0, 0, end); err != nil || fmt.Sprint(got) != "[first second]" {
		t.Errorf("log %v, %v", got, err)
	}
	if at, err := g.c.Committed(g.ctx, "g"); err != nil || len(at) != 0 {
		t.Errorf("offsets %v, %v", at, err)
	}
}

// Opening the id ends what its last holder left open, so that readers are not held up.
func TestOpenEndsWhatWasLeftOpen(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.abandoned("job", log0, "left")
	if stable, err := g.c.End(g.ctx, log0, true); err != nil || stable != 0 {
		t.Fatalf("stable end %d, %v", stable, err)
	}
	g.open("job").Close()
	if stable, err := g.c.End(g.ctx, log0, true); err != nil || stable != 2 {
		t.Errorf("stable end %d, %v", stable, err)
	}
}

// Answers that pass by themselves are repeated within the transaction; a lasting one is the step's error.
func TestCommitRepeatsPassingAnswersOnly(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	txn := g.open("job")
	at := []Offsets{{Group: "g", At: map[TP]int64{{"more", 0}: 7}}}
	for _, e := range []*kerr.Error{kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator} {
		f := g.broker.Fault(kfake.Fault{Keys: txnOffsetKeys, Err: e, Count: 2})
		if err := txn.Commit([]*kgo.Record{{Topic: "log", Value: []byte("v")}}, at); err != nil || f.Hits() != 2 {
			t.Fatalf("%v: %v after %d faults", e, err, f.Hits())
		}
	}
	g.broker.Fault(kfake.Fault{Keys: txnOffsetKeys, Err: kerr.OffsetMetadataTooLarge})
	err := txn.Commit([]*kgo.Record{{Topic: "log", Value: []byte("refused")}}, at)
	var se *StepError
	if !errors.As(err, &se) || se.Step != StepOffsets || !errors.Is(err, kerr.OffsetMetadataTooLarge) {
		t.Errorf("a lasting answer: %v", err)
	}
	txn.Close()
	txn = g.open("job")
	defer txn.Close()
	g.broker.Fault(kfake.Fault{Keys: produceKeys, Topic: "log", Err: kerr.InvalidRecord})
	if err := txn.Commit([]*kgo.Record{{Topic: "log", Value: []byte("refused")}}, at); !errors.As(err, &se) || se.Step != StepProduce {
		t.Errorf("a refused record: %v", err)
	}
	end, _ := g.c.End(g.ctx, log0, false)
	if err := g.c.Trim(g.ctx, map[TP]int64{}); err != nil {
		t.Error(err)
	}
	if _, err := kadm.NewClient(g.client).ListEndOffsets(g.ctx, "log"); err != nil || end == 0 {
		t.Errorf("end %d, %v", end, err)
	}
}
