package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrRecreated says that a topic has another id than before: it was deleted and made again, so offsets mean nothing any more.
var ErrRecreated = errors.New("topic was recreated")

// Batch is what one fetch brought of one partition.
type Batch struct {
	Records []*kgo.Record
	From    int64 // the position that was asked for
	Next    int64 // position behind the batch: past control records and aborted records too
	Stable  int64 // last stable offset at the time of the fetch
	Start   int64 // first offset of the log
	Bytes   int64 // fetched bytes that the records keep alive
	Err     error // ends the subscription; the records before it are good
}

// Taker receives the batches of one subscription. Ready is asked before each fetch: a full queue answers false and calls Wake
// later. Both are called from the fetcher's goroutines and must not block.
type Taker interface {
	Ready() bool
	Take(Batch)
}

// Subscription is one partition being read.
type Subscription struct {
	tp     TP
	id     [16]byte
	next   int64
	taker  Taker
	closed atomic.Bool
	busy   bool // in a request under way; guarded by the fetcher
	after  time.Time
}

// FetcherOptions bound what a fetch may bring.
type FetcherOptions struct {
	MaxBytes          int32         // of one answer; default 2 MiB: a record keeps the whole answer in memory
	MaxPartitionBytes int32         // of one partition in it; default 512 KiB
	MaxWait           time.Duration // how long the broker waits for the first byte; default 250 ms
	Rack              string        // for follower fetching (KIP-392)
}

// Fetcher reads any number of partitions, read committed, by its own positions: no group, no reset policy, no session. For each
// broker one request is under way at a time, naming every partition that has room. It never skips: an offset that the log
// does not have any more, or a recreated topic, is an error of that subscription.
//
// All of a worker's inputs share one Fetcher, so a worker holds one fetch connection for each broker.
type Fetcher struct {
	cluster *Cluster
	client  *kgo.Client
	opt     FetcherOptions
	dec     kgo.Decompressor

	mu      sync.Mutex
	subs    map[*Subscription]struct{}
	nodes   map[int32]*nodeLoop
	readers map[TP]int      // subscriptions of a partition
	lost    map[string]bool // topics whose leaders have to be asked for again

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	meta   chan struct{}
}

type nodeLoop struct{ wake chan struct{} }

// NewFetcher starts a fetcher with a client of its own.
func NewFetcher(c *Cluster, opt FetcherOptions) (*Fetcher, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = 2 << 20
	}
	if opt.MaxPartitionBytes == 0 {
		opt.MaxPartitionBytes = 512 << 10
	}
	if opt.MaxWait == 0 {
		opt.MaxWait = 250 * time.Millisecond
	}
	cl, err := kgo.NewClient(c.Options(kgo.DisableFetchSessions())...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fetcher{cluster: c, client: cl, opt: opt, dec: kgo.DefaultDecompressor(), subs: map[*Subscription]struct{}{},
		nodes: map[int32]*nodeLoop{}, lost: map[string]bool{}, readers: map[TP]int{}, ctx: ctx, cancel: cancel, meta: make(chan struct{}, 1)}
	f.wg.Add(1)
	go f.refresh()
	return f, nil
}

// Close ends all fetching and waits for it.
func (f *Fetcher) Close() {
	f.cancel()
	f.client.Close()
	f.wg.Wait()
}

// Subscribe begins to read tp at offset; id is the topic's id, which must stay the same.
func (f *Fetcher) Subscribe(tp TP, id [16]byte, offset int64, taker Taker) *Subscription {
	s := &Subscription{tp: tp, id: id, next: offset, taker: taker}
	f.mu.Lock()
	f.subs[s] = struct{}{}
	f.readers[tp]++
	f.wakeLocked(s)
	f.mu.Unlock()
	return s
}

// Unsubscribe ends a subscription. A batch may still be delivered by a fetch that is under way; the taker must ignore it.
func (f *Fetcher) Unsubscribe(s *Subscription) {
	s.closed.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.subs[s]; !ok {
		return
	}
	delete(f.subs, s)
	if f.readers[s.tp]--; f.readers[s.tp] == 0 {
		delete(f.readers, s.tp)
	}
}

// Wake tells that the taker of s has room again.
func (f *Fetcher) Wake(s *Subscription) {
	f.mu.Lock()
	f.wakeLocked(s)
	f.mu.Unlock()
}

// wakeLocked makes sure that the loop of the partition's leader runs and looks again.
func (f *Fetcher) wakeLocked(s *Subscription) {
	leader := f.leader(s.tp)
	if leader < 0 {
		f.lose(s.tp.Topic)
		return
	}
	n := f.nodes[leader]
	if n == nil {
		n = &nodeLoop{wake: make(chan struct{}, 1)}
		f.nodes[leader] = n
		f.wg.Add(1)
		go f.loop(leader, n)
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (f *Fetcher) leader(tp TP) int32 {
	f.cluster.mu.Lock()
	defer f.cluster.mu.Unlock()
	t, ok := f.cluster.topics[tp.Topic]
	if !ok || int(tp.Partition) >= len(t.Leaders) {
		return -1
	}
	return t.Leaders[tp.Partition]
}

// lose asks for a topic's leaders again.
func (f *Fetcher) lose(topic string) {
	f.lost[topic] = true
	select {
	case f.meta <- struct{}{}:
	default:
	}
}

// refresh asks for the leaders of lost topics, at most once in 50 ms.
func (f *Fetcher) refresh() {
	defer f.wg.Done()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.meta:
		}
		f.mu.Lock()
		names := make([]string, 0, len(f.lost))
		for t := range f.lost {
			names = append(names, t)
		}
		clear(f.lost)
		f.mu.Unlock()
		for _, t := range names {
			ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
			_, err := f.cluster.Topic(ctx, t, true)
			cancel()
			f.mu.Lock()
			if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
				f.lost[t] = true
			}
			for s := range f.subs {
				if s.tp.Topic == t {
					f.wakeLocked(s)
				}
			}
			f.mu.Unlock()
		}
		sleep(f.ctx, 50*time.Millisecond)
	}
}

// loop is one broker's: it fetches while any of its partitions has room.
func (f *Fetcher) loop(node int32, n *nodeLoop) {
	defer f.wg.Done()
	var pick []*Subscription
	for f.ctx.Err() == nil {
		var full bool
		pick, full = f.pick(node, pick[:0])
		if len(pick) == 0 {
			wait := time.NewTimer(time.Second)
			if full {
				wait.Reset(20 * time.Millisecond)
			}
			select {
			case <-f.ctx.Done():
			case <-n.wake:
			case <-wait.C:
			}
			wait.Stop()
			continue
		}
		f.fetch(node, pick, full)
	}
}

// pick lists the partitions that this broker leads and that have room; full tells whether some had none.
func (f *Fetcher) pick(node int32, pick []*Subscription) (_ []*Subscription, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for s := range f.subs {
		if s.busy || f.leader(s.tp) != node {
			continue
		}
		// A request names a partition once: another reader of it has its turn in the next one.
		twice := f.readers[s.tp] > 1 && slices.ContainsFunc(pick, func(o *Subscription) bool { return o.tp == s.tp })
		if twice || now.Before(s.after) || !s.taker.Ready() {
			full = true
			continue
		}
		s.busy = true
		pick = append(pick, s)
	}
	return pick, full
}

func (f *Fetcher) fetch(node int32, pick []*Subscription, full bool) {
	req := fetchRequest(f.opt)
	if full {
		// A partition without room now may have it soon: do not make it wait for the others' silence.
		req.MaxWaitMillis = 10
	}
	for _, s := range pick {
		addPartition(req, s.tp, s.id, s.next, f.opt.MaxPartitionBytes)
	}
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	resp, err := f.client.Broker(int(node)).Request(ctx, req)
	cancel()
	if err != nil || resp.(*kmsg.FetchResponse).ErrorCode != 0 {
		f.release(pick, true)
		sleep(f.ctx, 50*time.Millisecond)
		return
	}
	f.deliver(pick, resp.(*kmsg.FetchResponse))
}

func fetchRequest(o FetcherOptions) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1
	req.MaxWaitMillis = int32(o.MaxWait.Milliseconds())
	req.MinBytes, req.MaxBytes = 1, o.MaxBytes
	req.IsolationLevel = 1
	req.SessionID, req.SessionEpoch = 0, -1
	req.Rack = o.Rack
	return req
}

func addPartition(req *kmsg.FetchRequest, tp TP, id [16]byte, offset int64, max int32) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = tp.Partition, offset, max
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = -1, -1, -1
	for i := range req.Topics {
		if req.Topics[i].Topic == tp.Topic {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
			return
		}
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = tp.Topic, id
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
}

// release makes subscriptions free for the next request; lost also asks for their leaders again.
func (f *Fetcher) release(pick []*Subscription, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range pick {
		if !s.busy {
			continue
		}
		s.busy = false
		if lost {
			f.lose(s.tp.Topic)
		}
	}
}

func (f *Fetcher) deliver(pick []*Subscription, resp *kmsg.FetchResponse) {
	for ti := range resp.Topics {
		t := &resp.Topics[ti]
		for pi := range t.Partitions {
			p := &t.Partitions[pi]
			if s := find(pick, t, p.Partition); s != nil {
				f.one(s, p)
			}
		}
	}
	f.release(pick, false)
}

func find(pick []*Subscription, t *kmsg.FetchResponseTopic, partition int32) *Subscription {
	for _, s := range pick {
		if s.tp.Partition == partition && (t.Topic == s.tp.Topic || t.Topic == "" && t.TopicID == s.id) {
			return s
		}
	}
	return nil
}

// one hands a partition's part of an answer to its taker.
func (f *Fetcher) one(s *Subscription, p *kmsg.FetchResponseTopicPartition) {
	if s.closed.Load() {
		return
	}
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		f.failed(s, p, err)
		return
	}
	if len(p.RecordBatches) == 0 {
		return
	}
	b := Batch{From: s.next, Stable: p.LastStableOffset, Start: p.LogStartOffset, Bytes: int64(len(p.RecordBatches))}
	b.Records, b.Next, b.Err = decode(s.tp, s.next, p, f.dec)
	if b.Next == s.next && b.Err == nil {
		return
	}
	s.next = b.Next
	if b.Err != nil {
		f.Unsubscribe(s)
	}
	s.taker.Take(b)
}

func decode(tp TP, from int64, p *kmsg.FetchResponseTopicPartition, dec kgo.Decompressor) ([]*kgo.Record, int64, error) {
	o := kgo.ProcessFetchPartitionOpts{Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: tp.Topic, Partition: tp.Partition}
	fp, next := kgo.ProcessFetchPartition(o, p, dec, nil)
	if fp.Err != nil {
		fp.Err = fmt.Errorf("%v at offset %d: %w", tp, next, fp.Err)
	}
	return fp.Records, next, fp.Err
}

// failed sorts a partition's error code: leadership and load pass by themselves, all else ends the subscription.
func (f *Fetcher) failed(s *Subscription, p *kmsg.FetchResponseTopicPartition, err error) {
	switch {
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
		t, terr := f.cluster.Topic(ctx, s.tp.Topic, true)
		cancel()
		if terr == nil && t.ID != s.id {
			f.end(s, Batch{From: s.next, Next: s.next, Err: fmt.Errorf("%v: %w", s.tp, ErrRecreated)})
			return
		}
	case errors.Is(err, kerr.OffsetOutOfRange):
		f.end(s, Batch{From: s.next, Next: s.next, Start: p.LogStartOffset,
			Err: fmt.Errorf("%v: offset %d is not in the log, which begins at %d: %w", s.tp, s.next, p.LogStartOffset, err)})
		return
	case !kerr.IsRetriable(err):
		f.end(s, Batch{From: s.next, Next: s.next, Err: fmt.Errorf("fetch %v at offset %d: %w", s.tp, s.next, err)})
		return
	}
	f.mu.Lock()
	s.after = time.Now().Add(50 * time.Millisecond)
	f.lose(s.tp.Topic)
	f.mu.Unlock()
}

func (f *Fetcher) end(s *Subscription, b Batch) {
	f.Unsubscribe(s)
	s.taker.Take(b)
}

// ReadTo reads a partition from one position until the read-committed position has reached the bound, and hands over the committed
// records in order. Completion is by position, never by last record: the log may end in markers, aborted or compacted records.
// each gets the position behind the records.
func (c *Cluster) ReadTo(ctx context.Context, tp TP, from, bound int64, each func(records []*kgo.Record, next int64) error) error {
	opt := FetcherOptions{MaxBytes: 8 << 20, MaxPartitionBytes: 4 << 20, MaxWait: 20 * time.Millisecond}
	dec := kgo.DefaultDecompressor()
	fresh := false
	for from < bound {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read %v from %d to %d: %w", tp, from, bound, err)
		}
		t, err := c.Topic(ctx, tp.Topic, fresh)
		if err != nil {
			return err
		}
		if int(tp.Partition) >= len(t.Leaders) || t.Leaders[tp.Partition] < 0 {
			fresh = true
			sleep(ctx, 50*time.Millisecond)
			continue
		}
		req := fetchRequest(opt)
		addPartition(req, tp, t.ID, from, opt.MaxPartitionBytes)
		got, err := c.Client.Broker(int(t.Leaders[tp.Partition])).Request(ctx, req)
		if err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("read %v from %d to %d: %w", tp, from, bound, ctx.Err())
			}
			fresh = true
			sleep(ctx, 50*time.Millisecond)
			continue
		}
		resp := got.(*kmsg.FetchResponse)
		if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			fresh = true
			sleep(ctx, 50*time.Millisecond)
			continue
		}
		p := &resp.Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			if kerr.IsRetriable(err) {
				fresh = true
				sleep(ctx, 50*time.Millisecond)
				continue
			}
			return fmt.Errorf("read %v at offset %d: %w", tp, from, err)
		}
		fresh = false
		records, next, err := decode(tp, from, p, dec)
		if err != nil {
			return err
		}
		if next == from {
			continue
		}
		if err := each(records, next); err != nil {
			return err
		}
		from = next
	}
	return nil
}
