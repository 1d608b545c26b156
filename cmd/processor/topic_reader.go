package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicReader reads partitions of one topic by position: unlike a consumer it knows where it stands when a fetch brought markers,
// aborted records or nothing, so "read up to here" ends.
type topicReader struct {
	client     *kgo.Client
	topic      string
	id         [16]byte
	leaders    map[int32]int32
	position   map[int32]int64
	until      map[int32]int64 // nil: follow
	isolation  kgo.IsolationLevel
	level      int8 // the same as a request has it
	decompress kgo.Decompressor
}

const (
	readWait  = 200 * time.Millisecond
	readBytes = 4 << 20
	// stuckAfter is longer than a transaction time-out and the broker's scan for timed-out transactions together.
	stuckAfter = 60 * time.Second
)

func newTopicReader(ctx context.Context, cl *kgo.Client, topic string, committed bool) (*topicReader, error) {
	r := &topicReader{client: cl, topic: topic, position: map[int32]int64{}, decompress: kgo.DefaultDecompressor(), isolation: kgo.ReadUncommitted()}
	if committed {
		r.isolation, r.level = kgo.ReadCommitted(), 1
	}
	return r, r.refresh(ctx)
}

// refresh asks for the leaders.
func (r *topicReader) refresh(ctx context.Context) error {
	t, err := describeTopic(ctx, r.client, r.topic)
	if err != nil {
		return err
	}
	if r.leaders != nil && t.ID != r.id {
		return fmt.Errorf("topic %s was deleted and created again while it was read", r.topic)
	}
	r.id, r.leaders = t.ID, map[int32]int32{}
	for _, p := range t.Partitions {
		r.leaders[p.Partition] = p.Leader
	}
	return nil
}

// place sets the positions of the wanted partitions (nil: all): earliest, latest, an offset, or a time.
func (r *topicReader) place(ctx context.Context, wanted []int32, from startAt) error {
	adm := kadm.NewClient(r.client)
	starts, err := adm.ListStartOffsets(ctx, r.topic)
	if err != nil {
		return fmt.Errorf("start offsets of %s: %w", r.topic, err)
	}
	ends, err := adm.ListEndOffsets(ctx, r.topic)
	if err != nil {
		return fmt.Errorf("end offsets of %s: %w", r.topic, err)
	}
	at := starts
	switch {
	case from.latest:
		at = ends
	case !from.time.IsZero():
		if at, err = adm.ListOffsetsAfterMilli(ctx, from.time.UnixMilli(), r.topic); err != nil {
			return fmt.Errorf("offsets of %s at %s: %w", r.topic, from.time, err)
		}
	}
	for p := range r.leaders {
		if wanted != nil && !slices.Contains(wanted, p) {
			continue
		}
		s, e := starts[r.topic][p], ends[r.topic][p]
		o := at[r.topic][p]
		if err := errors.Join(s.Err, e.Err, o.Err); err != nil {
			return fmt.Errorf("offsets of %s/%d: %w", r.topic, p, err)
		}
		r.position[p] = o.Offset
		if from.offset >= 0 {
			r.position[p] = min(max(from.offset, s.Offset), e.Offset)
		}
	}
	for _, p := range wanted {
		if _, ok := r.leaders[p]; !ok {
			return fmt.Errorf("topic %s has no partition %d", r.topic, p)
		}
	}
	return nil
}

// stopAtEnd makes the present ends the bound. They are the read-uncommitted ones: what is being committed right now belongs to it.
func (r *topicReader) stopAtEnd(ctx context.Context) error {
	ends, err := kadm.NewClient(r.client).ListEndOffsets(ctx, r.topic)
	if err != nil {
		return fmt.Errorf("end offsets of %s: %w", r.topic, err)
	}
	r.until = map[int32]int64{}
	for p := range r.position {
		e := ends[r.topic][p]
		if e.Err != nil {
			return fmt.Errorf("end offset of %s/%d: %w", r.topic, p, e.Err)
		}
		r.until[p] = e.Offset
	}
	return nil
}

// read calls each with the records in order of offset, partition by partition, and flush after each round, until the bound is
// reached, each answers false, or ctx ends.
func (r *topicReader) read(ctx context.Context, each func(*kgo.Record) (bool, error), flush func() error) error {
	moved := time.Now()
	for {
		nodes := r.pending()
		if len(nodes) == 0 && r.until != nil {
			return flush()
		}
		for node, partitions := range nodes {
			before := r.sum()
			more, err := r.fetch(ctx, node, partitions, len(nodes) > 1, each)
			if ctx.Err() != nil {
				return flush()
			}
			if err := errors.Join(err, flush()); err != nil || !more {
				return err
			}
			if r.sum() != before {
				moved = time.Now()
			}
		}
		if r.until != nil && time.Since(moved) > stuckAfter {
			return r.stuck()
		}
	}
}

// pending groups the partitions that are not at their bound by leader.
func (r *topicReader) pending() map[int32][]int32 {
	out := map[int32][]int32{}
	for p, at := range r.position {
		if r.until == nil || at < r.until[p] {
			out[r.leaders[p]] = append(out[r.leaders[p]], p)
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

func (r *topicReader) sum() (n int64) {
	for _, at := range r.position {
		n += at
	}
	return n
}

func (r *topicReader) stuck() error {
	for p, at := range r.position {
		if at < r.until[p] {
			return fmt.Errorf("%s/%d stands at offset %d before its end %d: a transaction is open there; --isolation read_uncommitted shows its records", r.topic, p, at, r.until[p])
		}
	}
	return nil
}

func (r *topicReader) fetch(ctx context.Context, node int32, partitions []int32, several bool, each func(*kgo.Record) (bool, error)) (more bool, err error) {
	if node < 0 {
		return true, r.again(ctx)
	}
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.IsolationLevel = -1, 1, 4*readBytes, r.level
	req.SessionEpoch = -1
	req.MaxWaitMillis = int32(readWait.Milliseconds())
	if several || r.until != nil {
		req.MaxWaitMillis = 20
	}
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = r.topic, r.id
	for _, p := range partitions {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p, r.position[p], readBytes
		rp.CurrentLeaderEpoch, rp.LastFetchedEpoch, rp.LogStartOffset = -1, -1, -1
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	got, err := r.client.Broker(int(node)).Request(ctx, req)
	if err != nil {
		if ctx.Err() != nil || !kgo.IsRetryableBrokerErr(err) {
			return false, fmt.Errorf("fetch %s from broker %d: %w", r.topic, node, err)
		}
		return true, r.again(ctx)
	}
	resp := got.(*kmsg.FetchResponse)
	if resp.ErrorCode != 0 || len(resp.Topics) != 1 {
		return true, r.again(ctx)
	}
	for i := range resp.Topics[0].Partitions {
		if more, err := r.take(ctx, &resp.Topics[0].Partitions[i], each); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// again asks for leaders after a short pause. A cluster that is away for longer shows as an error of the request for them.
func (r *topicReader) again(ctx context.Context) error {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-t.C:
		return r.refresh(ctx)
	}
}

func (r *topicReader) take(ctx context.Context, p *kmsg.FetchResponseTopicPartition, each func(*kgo.Record) (bool, error)) (more bool, err error) {
	at := r.position[p.Partition]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		switch {
		case errors.Is(err, kerr.OffsetOutOfRange) && at < p.LogStartOffset:
			r.position[p.Partition] = p.LogStartOffset // trimmed meanwhile
			return true, nil
		case kerr.IsRetriable(err):
			return true, r.again(ctx)
		}
		return false, fmt.Errorf("fetch %s/%d at offset %d: %w", r.topic, p.Partition, at, err)
	}
	o := kgo.ProcessFetchPartitionOpts{Offset: at, IsolationLevel: r.isolation, Topic: r.topic, Partition: p.Partition}
	fp, next := kgo.ProcessFetchPartition(o, p, r.decompress, nil)
	if fp.Err != nil {
		return false, fmt.Errorf("%s/%d at offset %d: %w", r.topic, p.Partition, next, fp.Err)
	}
	r.position[p.Partition] = next
	for _, rec := range fp.Records {
		if r.until != nil && rec.Offset >= r.until[p.Partition] {
			break
		}
		if more, err := each(rec); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}
