package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// OpenIdempotent returns the producer of one attempt of swift stages: idempotent, outside transactions, acks of all in-sync
// replicas, unlimited retries, stopped by data loss. The first record that fails ends the attempt, and so the client.
func OpenIdempotent(c *Cluster, linger time.Duration, limit func(topic string) int32) (*kgo.Client, error) {
	return kgo.NewClient(c.Options(
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.StopProducerOnDataLossDetected(), kgo.ProducerLinger(linger),
		kgo.ProducerBatchMaxBytesFn(limit), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(1<<30), kgo.UnknownTopicRetries(-1),
		kgo.ProduceRequestTimeout(5*time.Second), kgo.RequestTimeoutOverhead(2*time.Second),
	)...)
}
