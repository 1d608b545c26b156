package embedded

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// BenchmarkCommit is one transaction of one record in each of six partitions, as a job's epoch is.
func BenchmarkCommit(b *testing.B) {
	for name, sync := range map[string]bool{"page-cache": false, "fsync": true} {
		b.Run(name, func(b *testing.B) {
			br, err := Start(b.TempDir(), Options{Listen: "127.0.0.1:0", SyncWrites: sync})
			if err != nil {
				b.Fatal(err)
			}
			defer br.Close()
			cl, err := kgo.NewClient(kgo.SeedBrokers(br.Addresses()...), kgo.TransactionalID("bench"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				b.Fatal(err)
			}
			defer cl.Close()
			ctx := b.Context()
			if _, err := kadm.NewClient(cl).CreateTopic(ctx, killParts, 1, nil, killTopic); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := cl.BeginTransaction(); err != nil {
					b.Fatal(err)
				}
				records := make([]*kgo.Record, killParts)
				for p := range records {
					records[p] = &kgo.Record{Topic: killTopic, Partition: int32(p), Value: []byte("1")}
				}
				if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
					b.Fatal(err)
				}
				if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
