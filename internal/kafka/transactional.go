package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Step is the part of a commit that failed: the same code means different things in different steps.
type Step uint8

// The steps of a transaction.
const (
	StepInit Step = iota
	StepProduce
	StepOffsets
	StepEnd
)

func (s Step) String() string {
	return [...]string{"InitProducerID", "Produce", "TxnOffsetCommit", "EndTxn"}[s]
}

// StepError is the first error of a transaction, with its step. After it the client must be closed and never used again.
type StepError struct {
	Step Step
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("%v: %v", e.Step, e.Err) }
func (e *StepError) Unwrap() error { return e.Err }

// Offsets are a group's input offsets, to be committed with a transaction.
type Offsets struct {
	Group string
	At    map[TP]int64
}

// Transactional is the client of one term of one transactional id. It is fenced by whoever opens the id after it; its first error
// ends it (a fenced client that repairs itself aborts the new owner's transaction).
type Transactional struct {
	cluster *Cluster
	client  *kgo.Client
	id      string
	timeout time.Duration
	// Took are the parts of the last commit: produce, offsets, end. For metrics.
	Took [3]time.Duration
}

// OpenTransactional fences every earlier holder of the transactional id and ends what it left open. limit is the largest record
// batch for a topic (its max.message.bytes).
func OpenTransactional(ctx context.Context, c *Cluster, id string, timeout time.Duration, limit func(topic string) int32) (*Transactional, error) {
	if limit == nil {
		limit = func(string) int32 { return 1000012 }
	}
	opts := []kgo.Opt{
		kgo.TransactionalID(id), kgo.TransactionTimeout(timeout), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytesFn(limit), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ManualFlushing(),
		kgo.MaxBufferedRecords(1 << 30), kgo.ProduceRequestTimeout(5 * time.Second), kgo.RequestTimeoutOverhead(2 * time.Second),
		kgo.MetadataMinAge(50 * time.Millisecond),
	}
	if c.Protocol < 2 {
		// Version 5 adds the group to the transaction by itself, which only protocol 2 does (KIP-890).
		v := kversion.Stable()
		v.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
		opts = append(opts, kgo.MaxVersions(v))
	}
	cl, err := kgo.NewClient(c.Options(opts...)...)
	if err != nil {
		return nil, &StepError{StepInit, err}
	}
	t := &Transactional{cluster: c, client: cl, id: id, timeout: timeout}
	if _, _, err := cl.ProducerID(ctx); err != nil {
		cl.Close()
		return nil, &StepError{StepInit, fmt.Errorf("transactional id %s: %w", id, err)}
	}
	return t, nil
}

// Close ends the client without ending its transaction: the next holder, or the broker's time-out, aborts it.
func (t *Transactional) Close() {
	t.client.Close()
}

// Commit sends one transaction: records in one burst, offsets, end. It returns nil if the transaction is committed; otherwise a
// *StepError, whose step StepEnd without a definite code means that the outcome is not known. Each record's Offset is set on
// success. Commit is never given a job's cancel context: it has its own deadline, the transaction time-out.
func (t *Transactional) Commit(records []*kgo.Record, offsets []Offsets) error {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	began := time.Now()
	part := func(i int) { t.Took[i], began = time.Since(began), time.Now() }
	if err := t.client.BeginTransaction(); err != nil {
		return &StepError{StepProduce, err}
	}
	if err := t.produce(ctx, records); err != nil {
		return &StepError{StepProduce, err}
	}
	part(0)
	for _, o := range offsets {
		if len(o.At) == 0 {
			continue
		}
		if err := t.commitOffsets(ctx, o); err != nil {
			return &StepError{StepOffsets, err}
		}
	}
	part(1)
	if err := t.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return &StepError{StepEnd, err}
	}
	part(2)
	return nil
}

func (t *Transactional) produce(ctx context.Context, records []*kgo.Record) error {
	var mu sync.Mutex
	var first error
	promise := func(r *kgo.Record, err error) {
		if err == nil {
			return
		}
		mu.Lock()
		if first == nil {
			first = fmt.Errorf("%s/%d: %w", r.Topic, r.Partition, err)
		}
		mu.Unlock()
	}
	for _, r := range records {
		t.client.Produce(ctx, r, promise)
	}
	err := t.client.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	if first != nil {
		return first
	}
	return err
}

func (t *Transactional) commitOffsets(ctx context.Context, o Offsets) error {
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	if t.cluster.Protocol < 2 {
		if err := t.addGroup(ctx, o.Group, id, epoch); err != nil {
			return err
		}
	}
	req, err := t.offsetsRequest(ctx, o, id, epoch)
	if err != nil {
		return err
	}
	for {
		resp, err := req.RequestWith(ctx, t.client)
		if err == nil {
			err = offsetsError(req, resp)
		}
		if err == nil || !again(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, 5*time.Millisecond)
	}
}

func (t *Transactional) offsetsRequest(ctx context.Context, o Offsets, id int64, epoch int16) (*kmsg.TxnOffsetCommitRequest, error) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = t.id, o.Group, id, epoch, -1
	index := map[string]int{}
	for tp, at := range o.At {
		i, ok := index[tp.Topic]
		if !ok {
			topic, err := t.cluster.Topic(ctx, tp.Topic, false)
			if err != nil {
				return nil, err
			}
			rt := kmsg.NewTxnOffsetCommitRequestTopic()
			rt.Topic, rt.TopicID = tp.Topic, topic.ID
			i = len(req.Topics)
			index[tp.Topic] = i
			req.Topics = append(req.Topics, rt)
		}
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch = tp.Partition, at, -1
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	return req, nil
}

// offsetsError is the answer's first lasting error, else a passing one. Version 6 names topics by id only.
func offsetsError(req *kmsg.TxnOffsetCommitRequest, resp *kmsg.TxnOffsetCommitResponse) error {
	var passing error
	for _, t := range resp.Topics {
		for _, rt := range req.Topics {
			if t.Topic == "" && rt.TopicID == t.TopicID {
				t.Topic = rt.Topic
			}
		}
		for _, p := range t.Partitions {
			err := kerr.ErrorForCode(p.ErrorCode)
			if err == nil {
				continue
			}
			err = fmt.Errorf("%s/%d: %w", t.Topic, p.Partition, err)
			if !again(err) {
				return err
			}
			passing = err
		}
	}
	return passing
}

// again tells which answers of AddOffsetsToTxn and TxnOffsetCommit pass by themselves; both may be repeated within a transaction.
func again(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Retriable || errors.Is(err, kerr.ConcurrentTransactions)
	}
	return kgo.IsRetryableBrokerErr(err)
}

func (t *Transactional) addGroup(ctx context.Context, group string, id int64, epoch int16) error {
	for {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, id, epoch, group
		resp, err := req.RequestWith(ctx, t.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil || !again(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, 5*time.Millisecond)
	}
}
