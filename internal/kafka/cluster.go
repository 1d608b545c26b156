package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TP is one partition of a topic.
type TP struct {
	Topic     string
	Partition int32
}

func (tp TP) String() string { return fmt.Sprintf("%s/%d", tp.Topic, tp.Partition) }

// Topic is what the cluster says of a topic.
type Topic struct {
	ID      [16]byte
	Leaders []int32 // by partition; -1: none at present
}

// Cluster is a client for metadata, administration, restore and everything else that is not on the record path. It is safe for
// concurrent use.
type Cluster struct {
	Client *kgo.Client
	Admin  *kadm.Client
	// Protocol is the cluster's transaction.version: 1, or 2 where KIP-890's second part is finalized.
	Protocol int16

	options []kgo.Opt
	mu      sync.Mutex
	topics  map[string]Topic
}

// Open connects: options are those of Options. It asks for the brokers' versions, so an unreachable cluster is an error here.
func Open(ctx context.Context, options []kgo.Opt) (*Cluster, error) {
	cl, err := kgo.NewClient(append(slices.Clone(options), kgo.DisableFetchSessions())...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Client: cl, Admin: kadm.NewClient(cl), options: options, topics: map[string]Topic{}, Protocol: 1}
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "processor", "1"
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		cl.Close()
		return nil, err
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" && f.MaxVersionLevel >= 2 {
			c.Protocol = 2
		}
	}
	return c, nil
}

// Close ends the client.
func (c *Cluster) Close() { c.Client.Close() }

// Options are the options of further clients on the same cluster.
func (c *Cluster) Options(more ...kgo.Opt) []kgo.Opt { return append(slices.Clone(c.options), more...) }

// Topic returns a topic's id and leaders, from memory unless fresh is set. A topic that does not exist is
// kerr.UnknownTopicOrPartition.
func (c *Cluster) Topic(ctx context.Context, name string, fresh bool) (Topic, error) {
	c.mu.Lock()
	t, ok := c.topics[name]
	c.mu.Unlock()
	if ok && !fresh {
		return t, nil
	}
	got, err := c.Topics(ctx, name)
	if err != nil {
		return Topic{}, err
	}
	return got[name], nil
}

// Topics asks the cluster for several topics at once and remembers what it says. A missing one is an error.
func (c *Cluster) Topics(ctx context.Context, names ...string) (map[string]Topic, error) {
	md, err := c.Admin.Metadata(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("metadata of %v: %w", names, err)
	}
	out := make(map[string]Topic, len(names))
	for _, name := range names {
		d, ok := md.Topics[name]
		if !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			return nil, fmt.Errorf("topic %s: %w", name, kerr.UnknownTopicOrPartition)
		}
		if d.Err != nil {
			return nil, fmt.Errorf("topic %s: %w", name, d.Err)
		}
		t := Topic{ID: d.ID, Leaders: make([]int32, len(d.Partitions))}
		for p := range t.Leaders {
			t.Leaders[p] = -1
			if pd, ok := d.Partitions[int32(p)]; ok && pd.Err == nil {
				t.Leaders[p] = pd.Leader
			}
		}
		out[name] = t
	}
	c.mu.Lock()
	for name, t := range out {
		c.topics[name] = t
	}
	c.mu.Unlock()
	return out, nil
}

// End returns a partition's end offset: the read-uncommitted one, or with stable the last stable offset.
func (c *Cluster) End(ctx context.Context, tp TP, stable bool) (int64, error) {
	return c.list(ctx, tp, -1, stable)
}

// Start returns a partition's first offset.
func (c *Cluster) Start(ctx context.Context, tp TP) (int64, error) { return c.list(ctx, tp, -2, false) }

// After returns the first offset whose timestamp is at least millis (Unix milliseconds), or the end if there is none.
func (c *Cluster) After(ctx context.Context, tp TP, millis int64) (int64, error) {
	off, err := c.list(ctx, tp, millis, true)
	if err == nil && off < 0 {
		return c.End(ctx, tp, false)
	}
	return off, err
}

func (c *Cluster) list(ctx context.Context, tp TP, timestamp int64, stable bool) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if stable {
		req.IsolationLevel = 1
	}
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = tp.Topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp = tp.Partition, timestamp
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, c.Client)
	if err != nil {
		return 0, fmt.Errorf("list offsets of %v: %w", tp, err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("list offsets of %v: the answer does not name the partition", tp)
	}
	p := resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return 0, fmt.Errorf("list offsets of %v: %w", tp, err)
	}
	return p.Offset, nil
}

// Committed returns a group's committed offsets of the given topics' partitions, waiting for pending transactions that hold
// offsets (KIP-447's stable offsets). A partition without one is missing in the result.
func (c *Cluster) Committed(ctx context.Context, group string) (map[TP]int64, error) {
	return c.committed(kadm.RequireStable(ctx), group)
}

// CommittedNow is Committed without waiting for pending transactions, for reports: a sleeping holder must not hold them up.
func (c *Cluster) CommittedNow(ctx context.Context, group string) (map[TP]int64, error) {
	return c.committed(ctx, group)
}

func (c *Cluster) committed(ctx context.Context, group string) (map[TP]int64, error) {
	for attempt := 0; ; attempt++ {
		got, err := c.Admin.FetchOffsets(ctx, group)
		if err == nil {
			err = got.Error()
		}
		if errors.Is(err, kerr.GroupIDNotFound) {
			return map[TP]int64{}, nil
		}
		if err != nil {
			if ctx.Err() == nil && retriable(err) && attempt < 200 {
				sleep(ctx, 50*time.Millisecond)
				continue
			}
			return nil, fmt.Errorf("offsets of group %s: %w", group, err)
		}
		out := map[TP]int64{}
		got.Each(func(o kadm.OffsetResponse) {
			if o.At >= 0 {
				out[TP{o.Topic, o.Partition}] = o.At
			}
		})
		return out, nil
	}
}

func retriable(err error) bool {
	return kerr.IsRetriable(err) || errors.Is(err, kerr.UnstableOffsetCommit) || kgo.IsRetryableBrokerErr(err)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Trim deletes records below the given offsets.
func (c *Cluster) Trim(ctx context.Context, below map[TP]int64) error {
	if len(below) == 0 {
		return nil
	}
	os := kadm.Offsets{}
	for tp, o := range below {
		os.AddOffset(tp.Topic, tp.Partition, o, -1)
	}
	resp, err := c.Admin.DeleteRecords(ctx, os)
	if err != nil {
		return fmt.Errorf("delete consumed records: %w", err)
	}
	var first error
	resp.Each(func(r kadm.DeleteRecordsResponse) {
		if r.Err != nil && first == nil {
			first = fmt.Errorf("delete consumed records of %s/%d: %w", r.Topic, r.Partition, r.Err)
		}
	})
	return first
}
