package embedded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// halfDone returns a folder whose broker was killed while transaction 0 was open in all partitions, and that transaction's producer.
func halfDone(t *testing.T) (dir string, pid int64, epoch int16) {
	t.Helper()
	dir = t.TempDir()
	b := start(t, dir)
	cl := client(t, b, kgo.TransactionalID("writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ctx := deadline(t)
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, killParts, 1, nil, killTopic); err != nil {
		t.Fatal(err)
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p := range killParts {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: killTopic, Partition: int32(p), Value: []byte("0")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	pid, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cl.Close()
	abandon(t, b)
	return dir, pid, epoch
}

func shown(t *testing.T, dir string) (records []int, offset int64) {
	t.Helper()
	b := start(t, dir)
	for _, numbers := range visible(t, b) {
		records = append(records, len(numbers))
	}
	offset = groupOffset(t, b)
	abandon(t, b)
	return records, offset
}

func TestBegunCommitIsFinishedAfterAKill(t *testing.T) {
	t.Parallel()
	dir, pid, epoch := halfDone(t)
	doc, err := json.Marshal(intent{Producer: pid, Epoch: epoch, Offsets: []groupOffsets{{Group: "readers", Offsets: []offsetCommit{{Topic: killTopic, Offset: 41}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "commit.journal"), frame(doc), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the repair may itself be cut short and repeated
		records, offset := shown(t, dir)
		for p, n := range records {
			if n != 1 {
				t.Errorf("partition %d shows %d records of the begun commit", p, n)
			}
		}
		if offset != 41 {
			t.Errorf("group offset is %d", offset)
		}
	}
}

func TestOpenTransactionIsAbortedAfterAKillForGood(t *testing.T) {
	t.Parallel()
	dir, _, _ := halfDone(t)
	// The kill came between the last batch and its index entry.
	index := filepath.Join(dir, "data", "partitions", killTopic+"-0", "0.idx")
	if err := os.Truncate(index, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// The same transactional id goes on; its commits must not bring the aborted records back.
		b := start(t, dir)
		cl := client(t, b, kgo.TransactionalID("writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for p := range killParts {
			if err := cl.ProduceSync(deadline(t), &kgo.Record{Topic: killTopic, Partition: int32(p), Value: []byte("1")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := cl.EndTransaction(deadline(t), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		cl.Close()
		abandon(t, b)
	}
	b := start(t, dir)
	defer b.Close()
	for p, numbers := range visible(t, b) {
		if len(numbers) != 2 || numbers[0] != 1 || numbers[1] != 1 {
			t.Errorf("partition %d shows %v, want the two later commits", p, numbers)
		}
	}
}

func TestProducerThatOutlivedTheBrokerIsFenced(t *testing.T) {
	t.Parallel()
	dir, pid, epoch := halfDone(t)
	b := start(t, dir)
	defer b.Close()
	cl := client(t, b)
	defer cl.Close()
	if err := commitOffset(deadline(t), cl, "writer", "readers", pid, epoch, 1); err == nil {
		t.Error("the old producer goes on in the middle of its aborted transaction")
	}
}
