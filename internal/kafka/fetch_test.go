package kafka

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	fetchKeys     = []kmsg.Key{kmsg.Fetch}
	txnOffsetKeys = []kmsg.Key{kmsg.TxnOffsetCommit}
	produceKeys   = []kmsg.Key{kmsg.Produce}
)

// basket is a taker that keeps everything and holds at most room batches, unless room is 0.
type basket struct {
	mu     sync.Mutex
	room   int
	held   int
	values []string
	next   int64
	fault  string // what was wrong with a batch
	err    error
	told   chan struct{}
}

func newBasket(from int64, room int) *basket {
	return &basket{next: from, room: room, told: make(chan struct{}, 1)}
}

func (b *basket) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.room == 0 || b.held < b.room
}

// Take checks that batches follow each other without a hole.
func (b *basket) Take(in Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if in.From != b.next || in.Next < in.From {
		b.fault = fmt.Sprintf("batch from %d to %d, expected from %d", in.From, in.Next, b.next)
	}
	for _, r := range in.Records {
		if r.Offset < b.next || r.Offset >= in.Next {
			b.fault = fmt.Sprintf("record at %d in a batch from %d to %d", r.Offset, b.next, in.Next)
		}
		b.values = append(b.values, string(r.Value))
	}
	b.next, b.err = in.Next, in.Err
	b.held++
	if b.room > 0 && b.held > b.room {
		b.fault = "a batch came although there was no room"
	}
	select {
	case b.told <- struct{}{}:
	default:
	}
}

// until waits for a condition on the basket.
func (g *ground) until(b *basket, what string, ok func() bool) {
	g.t.Helper()
	for {
		b.mu.Lock()
		done, now := ok(), fmt.Sprintf("next %d, %d values, error %v", b.next, len(b.values), b.err)
		fault := b.fault
		b.mu.Unlock()
		if fault != "" {
			g.t.Fatal(fault)
		}
		if done {
			return
		}
		select {
		case <-b.told:
		case <-g.ctx.Done():
			g.t.Fatalf("%s did not come: %s", what, now)
		}
	}
}

func (g *ground) fetcher() *Fetcher {
	g.t.Helper()
	f, err := NewFetcher(g.c, FetcherOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(f.Close)
	return f
}

func (g *ground) id(topic string) [16]byte {
	g.t.Helper()
	t, err := g.c.Topic(g.ctx, topic, true)
	if err != nil {
		g.t.Fatal(err)
	}
	return t.ID
}

// Only committed records come; the position passes markers and aborted records, and waits before an open transaction.
func TestFetcherReadsCommittedAndPassesMarkers(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.produce(log0, "a")
	g.abandoned("x", log0, "never")()
	b := newBasket(0, 0)
	g.fetcher().Subscribe(log0, g.id("log"), 0, b)
	g.until(b, "the marker", func() bool { return b.next == 3 })
	end := g.abandoned("y", log0, "never")
	g.produce(log0, "b")
	end()
	g.until(b, "the end", func() bool { return b.next == 6 })
	if got := strings.Join(b.values, " "); got != "a b" {
		t.Errorf("values %q", got)
	}
}

// Two readers of one partition stand at different positions. Each gets all that lies behind its own, without a hole: brokers answer a
// request that names a partition twice only once.
func TestFetcherServesTwoReadersOfOnePartition(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for i := range 300 {
		g.produce(log0, fmt.Sprint(i))
	}
	var twice sync.Map
	g.broker.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		g.broker.KeepControl()
		for _, t := range req.(*kmsg.FetchRequest).Topics {
			seen := map[int32]bool{}
			for _, p := range t.Partitions {
				if seen[p.Partition] {
					twice.Store(p.Partition, true)
				}
				seen[p.Partition] = true
			}
		}
		return nil, nil, false
	})
	f := g.fetcher()
	id := g.id("log")
	early, late := newBasket(0, 0), newBasket(200, 0)
	f.Subscribe(log0, id, 200, late)
	f.Subscribe(log0, id, 0, early)
	g.until(early, "all of it", func() bool { return early.next == 300 })
	g.until(late, "the rest", func() bool { return late.next == 300 })
	for i := range 100 {
		g.produce(log0, fmt.Sprint(300+i))
	}
	g.until(early, "all of it", func() bool { return early.next == 400 })
	g.until(late, "the rest", func() bool { return late.next == 400 })
	if len(early.values) != 400 || len(late.values) != 200 || early.values[399] != "399" || late.values[0] != "200" {
		t.Errorf("%d and %d records", len(early.values), len(late.values))
	}
	twice.Range(func(p, _ any) bool {
		t.Errorf("a request names partition %v twice", p)
		return false
	})
}

// A taker without room is not fetched for, the others go on, and Wake brings it back.
func TestFetcherFetchesOnlyWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	f := g.fetcher()
	id := g.id("log")
	full, other := newBasket(0, 1), newBasket(0, 0)
	sub := f.Subscribe(log0, id, 0, full)
	f.Subscribe(TP{"log", 1}, id, 0, other)
	g.produce(log0, "a")
	g.until(full, "the first batch", func() bool { return full.next == 1 })
	for i := range 20 {
		g.produce(log0, "b")
		g.produce(TP{"log", 1}, "c")
		g.until(other, "the others' records", func() bool { return other.next == int64(i+1) })
	}
	full.mu.Lock()
	if full.next != 1 {
		t.Errorf("the full taker got up to %d", full.next)
	}
	full.held = 0
	full.room = 0
	full.mu.Unlock()
	f.Wake(sub)
	g.until(full, "the rest", func() bool { return full.next == 21 })
	f.Unsubscribe(sub)
	g.produce(TP{"log", 1}, "c")
	g.until(other, "the others' records", func() bool { return other.next == 21 })
}

// What cannot be read is the subscription's error, never a jump: an offset that the log has no more, or another topic of the name.
func TestFetcherEndsASubscriptionThatCannotGoOn(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.produce(log0, "a", "b", "c")
	g.produce(TP{"log", 1}, "a")
	if err := g.c.Trim(g.ctx, map[TP]int64{log0: 2}); err != nil {
		t.Fatal(err)
	}
	f := g.fetcher()
	id := g.id("log")
	lost, alive := newBasket(1, 0), newBasket(0, 0)
	f.Subscribe(log0, id, 1, lost)
	g.until(lost, "the error", func() bool { return errors.Is(lost.err, kerr.OffsetOutOfRange) })
	if !strings.Contains(lost.err.Error(), "log/0: offset 1 is not in the log, which begins at 2") || len(lost.values) > 0 {
		t.Errorf("%v, values %v", lost.err, lost.values)
	}
	f.Subscribe(TP{"log", 1}, id, 0, alive)
	g.until(alive, "the record", func() bool { return alive.next == 1 })
	if err := g.broker.DeleteTopic("log"); err != nil {
		t.Fatal(err)
	}
	if err := g.broker.CreateTopic("log", 2, nil); err != nil {
		t.Fatal(err)
	}
	g.until(alive, "the end", func() bool { return errors.Is(alive.err, ErrRecreated) })
}

// Leadership moves, brokers come late: the fetcher follows.
func TestFetcherFollowsTheLeader(t *testing.T) {
	t.Parallel()
	g := newGround(t, kfake.NumBrokers(3))
	b := newBasket(0, 0)
	g.fetcher().Subscribe(log0, g.id("log"), 0, b)
	for i := range int64(6) {
		if err := g.broker.MoveTopicPartition("log", 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		g.produce(log0, "v")
		g.until(b, "a record at the new leader", func() bool { return b.next == i+1 })
	}
	f := g.broker.Fault(kfake.Fault{Keys: fetchKeys, Topic: "log", Err: kerr.NotLeaderForPartition, Count: 3})
	g.produce(log0, "v")
	g.until(b, "a record after passing errors", func() bool { return b.next == 7 })
	if f.Hits() != 3 {
		t.Logf("%d passing errors", f.Hits())
	}
}

// I6: the swift producer hands every failure to the promise, and keeps order.
func TestIdempotentProducerReportsEachRecord(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	cl, err := OpenIdempotent(g.c, 0, func(string) int32 { return 1 << 20 })
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	f := g.broker.Fault(kfake.Fault{Keys: produceKeys, Err: kerr.NotEnoughReplicas, Count: 3})
	for i := range 20 {
		if err := cl.ProduceSync(g.ctx, &kgo.Record{Topic: "log", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := g.readTo(log0, 0, 20); err != nil || len(got) != 20 || got[19] != "19" || f.Hits() != 3 {
		t.Errorf("%v, %v, %d faults", got, err, f.Hits())
	}
	g.broker.Fault(kfake.Fault{Keys: produceKeys, Err: kerr.InvalidRecord})
	if err := cl.ProduceSync(g.ctx, &kgo.Record{Topic: "log", Value: []byte("x")}).FirstErr(); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a refused record: %v", err)
	}
}
