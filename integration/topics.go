package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// pollInterval is how often a condition that Kafka does not announce is looked at.
const pollInterval = 50 * time.Millisecond

func connect(brokers string, options ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.MetadataMinAge(pollInterval)}
	client, err := kgo.NewClient(append(base, options...)...)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", brokers, err)
	}
	return client, nil
}

// Admin gives an administration client and the function that closes it.
func Admin(brokers string) (*kadm.Client, func(), error) {
	client, err := connect(brokers)
	if err != nil {
		return nil, nil, err
	}
	return kadm.NewClient(client), client.Close, nil
}

// CreateTopic creates a topic and returns when every partition of it has a leader. Settings are those of Kafka's topics.
func CreateTopic(ctx context.Context, brokers, topic string, partitions int, settings map[string]string) error {
	admin, closeAdmin, err := Admin(brokers)
	if err != nil {
		return err
	}
	defer closeAdmin()
	values := map[string]*string{}
	for name, value := range settings {
		values[name] = kadm.StringPtr(value)
	}
	if _, err := admin.CreateTopic(ctx, int32(partitions), -1, values, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return poll(ctx, "leaders of topic "+topic, func() (bool, error) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		return err == nil && ends.Error() == nil && len(ends[topic]) == partitions, nil
	})
}

// DeletePipeline deletes a pipeline's group, and the topics that carry its prefix or are named.
func DeletePipeline(ctx context.Context, brokers, pipeline string, topics ...string) error {
	admin, closeAdmin, err := Admin(brokers)
	if err != nil {
		return err
	}
	defer closeAdmin()
	all, err := admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	var doomed []string
	for _, name := range all.Names() {
		if strings.HasPrefix(name, pipeline+".") {
			doomed = append(doomed, name)
		}
	}
	for _, name := range topics {
		if all.Has(name) && !slices.Contains(doomed, name) {
			doomed = append(doomed, name)
		}
	}
	if len(doomed) > 0 {
		answers, err := admin.DeleteTopics(ctx, doomed...)
		if err := errors.Join(err, answers.Error()); err != nil {
			return fmt.Errorf("delete topics of %s: %w", pipeline, err)
		}
	}
	// A group whose members ended without leaving cannot be deleted before their session is over; its offsets went with the topics.
	answer, err := admin.DeleteGroup(ctx, pipeline)
	if err == nil {
		err = answer.Err
	}
	if err == nil || errors.Is(err, kerr.GroupIDNotFound) || errors.Is(err, kerr.NonEmptyGroup) {
		return nil
	}
	return fmt.Errorf("delete group %s: %w", pipeline, err)
}

// poll looks at a condition until it holds or the context ends.
func poll(ctx context.Context, what string, holds func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, err := holds()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// Load writes records number from to number to-1 of a topic, at most rate of them a second (0: as fast as it goes), and
// returns when the broker has acknowledged all. Records with one key keep their order.
func Load(ctx context.Context, brokers, topic string, from, to, rate int, record func(i int) *kgo.Record) error {
	client, err := connect(brokers, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return err
	}
	defer client.Close()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	failed := kgo.AbortingFirstErrPromise(client)
	started := time.Now()
	for i := from; i < to && ctx.Err() == nil; i++ {
		for rate > 0 && ctx.Err() == nil && float64(i-from) >= time.Since(started).Seconds()*float64(rate) {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		client.Produce(ctx, record(i), failed.Promise())
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("load topic %s: %w", topic, err)
	}
	if err := failed.Err(); err != nil {
		return fmt.Errorf("load topic %s: %w", topic, err)
	}
	return ctx.Err()
}

// closedEnds waits until no transaction is open in a topic and returns its ends. A committed offset does not say that: Kafka writes
// the markers of one transaction partition by partition, so that the group's may be there before the topic's.
func closedEnds(ctx context.Context, admin *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	var ends kadm.ListedOffsets
	err := poll(ctx, "transactions of topic "+topic+" end", func() (bool, error) {
		all, err := admin.ListEndOffsets(ctx, topic)
		if err := errors.Join(err, all.Error()); err != nil {
			return false, err
		}
		ends, err = admin.ListCommittedOffsets(ctx, topic)
		if err := errors.Join(err, ends.Error()); err != nil {
			return false, err
		}
		for partition, end := range all[topic] {
			if ends[topic][partition].Offset < end.Offset {
				return false, nil
			}
		}
		return true, nil
	})
	return ends, err
}

// ReadCommitted hands over every committed record of a topic in the order of each partition, when no transaction is open in it. The
// end is reached by position, so that a log which ends in aborted records and markers does not hold it up.
func ReadCommitted(ctx context.Context, brokers, topic string, visit func(*kgo.Record)) error {
	admin, closeAdmin, err := Admin(brokers)
	if err != nil {
		return err
	}
	defer closeAdmin()
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err := errors.Join(err, starts.Error()); err != nil {
		return fmt.Errorf("start of topic %s: %w", topic, err)
	}
	ends, err := closedEnds(ctx, admin, topic)
	if err != nil {
		return err
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	for partition, end := range ends[topic] {
		if start := starts[topic][partition].Offset; start < end.Offset {
			from[partition], left[partition] = kgo.NewOffset().At(start), end.Offset
		}
	}
	if len(left) == 0 {
		return nil
	}
	client, err := connect(brokers, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return err
	}
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read topic %s, partitions and ends not reached %v: %w", topic, left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, wanted := left[r.Partition]
			if wanted && r.Offset < end && !r.Attrs.IsControl() {
				visit(r)
			}
			if wanted && r.Offset >= end-1 {
				delete(left, r.Partition)
			}
		})
	}
	return nil
}

// Lag is how many offsets of a topic a group has not committed, records and transaction markers alike. A partition without a
// committed offset counts from its start.
func Lag(ctx context.Context, admin *kadm.Client, group, topic string) (int64, error) {
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err := errors.Join(err, starts.Error()); err != nil {
		return 0, fmt.Errorf("start of topic %s: %w", topic, err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err := errors.Join(err, ends.Error()); err != nil {
		return 0, fmt.Errorf("end of topic %s: %w", topic, err)
	}
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return 0, fmt.Errorf("offsets of group %s: %w", group, err)
	}
	var lag int64
	for partition, end := range ends[topic] {
		at := starts[topic][partition].Offset
		if o, ok := committed.Lookup(topic, partition); ok && o.At > at {
			at = o.At
		}
		lag += end.Offset - at
	}
	return lag, nil
}

// AwaitDrained waits until a group has committed the ends of these topics. They are looked at in the order of the path, so that
// with no new input the last one's end is the end.
func AwaitDrained(ctx context.Context, brokers, group string, topics ...string) error {
	admin, closeAdmin, err := Admin(brokers)
	if err != nil {
		return err
	}
	defer closeAdmin()
	for _, topic := range topics {
		last := int64(-1)
		var failed error
		err := poll(ctx, fmt.Sprintf("group %s drains topic %s", group, topic), func() (bool, error) {
			lag, err := Lag(ctx, admin, group, topic)
			if err != nil {
				failed = err
				return false, nil
			}
			last = lag
			return lag == 0, nil
		})
		if err != nil {
			return errors.Join(fmt.Errorf("%w; last seen lag %d", err, last), failed)
		}
	}
	return nil
}

// EndOffsets is the sum of a topic's end offsets, uncommitted records and markers included.
func EndOffsets(ctx context.Context, brokers, topic string) (int64, error) {
	admin, closeAdmin, err := Admin(brokers)
	if err != nil {
		return 0, err
	}
	defer closeAdmin()
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err := errors.Join(err, ends.Error()); err != nil {
		return 0, fmt.Errorf("end of topic %s: %w", topic, err)
	}
	var sum int64
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum, nil
}
