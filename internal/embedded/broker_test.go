package embedded

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, dir string) *Broker {
	t.Helper()
	b, err := Start(dir, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func client(t *testing.T, b *Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Addresses()...))...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// commitOffset adds an offset of partition 0 to the open transaction, as a job's commit does: without a group member.
func commitOffset(ctx context.Context, cl *kgo.Client, txn, group string, pid int64, epoch int16, offset int64) error {
	topics, err := kadm.NewClient(cl).ListTopics(ctx, killTopic)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = txn, group, pid, epoch, -1
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID = killTopic, topics[killTopic].ID
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func groupOffset(t *testing.T, b *Broker) int64 {
	t.Helper()
	cl := client(t, b)
	defer cl.Close()
	got, err := kadm.NewClient(cl).FetchOffsets(deadline(t), "readers")
	if err != nil {
		t.Fatal(err)
	}
	o, ok := got.Lookup(killTopic, 0)
	if !ok {
		return -1
	}
	return o.At
}

// visible reads what a read-committed consumer gets of each partition, up to the end.
func visible(t *testing.T, b *Broker) [][]int {
	t.Helper()
	ctx := deadline(t)
	cl := client(t, b, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(20*time.Millisecond))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, killTopic)
	if err != nil {
		t.Fatal(err)
	}
	from, out, missing := map[int32]kgo.Offset{}, make([][]int, killParts), 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			from[o.Partition] = kgo.NewOffset().At(0)
			missing++
		}
	})
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{killTopic: from})
	for missing > 0 {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		f.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n, err := strconv.Atoi(string(r.Value))
				if err != nil {
					t.Fatal(err)
				}
				out[r.Partition] = append(out[r.Partition], n)
			}
			if e, _ := ends.Lookup(killTopic, r.Partition); r.Offset == e.Offset-1 { // always a marker here
				missing--
			}
		})
	}
	return out
}

// abandon ends the broker as a kill would: nothing is saved, the lock file keeps its mark.
func abandon(t *testing.T, b *Broker) {
	t.Helper()
	mark, err := os.ReadFile(b.lock.f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.lock.f.Name(), mark, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBrokerKeepsDataAndPortOverACleanEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, dir)
	cl := client(t, b)
	ctx := deadline(t)
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 3, 1, nil, killTopic); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: killTopic, Value: []byte("7")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	address := b.Addresses()[0]
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := Start(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Addresses()[0] != address {
		t.Errorf("address is %s after a restart, was %s", b.Addresses()[0], address)
	}
	cl = client(t, b, kgo.ConsumeTopics(killTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	f := cl.PollFetches(ctx)
	if f.NumRecords() != 1 || string(f.Records()[0].Value) != "7" {
		t.Errorf("after a restart the topic has %d records: %v", f.NumRecords(), f.Err())
	}
}

func TestSecondOpenAttachesAndTheFolderIsFreeAfterwards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, dir)
	second, err := Open(deadline(t), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !second.Attached() || second.Addresses()[0] != b.Addresses()[0] || second.PID() != os.Getpid() {
		t.Errorf("second open: attached %v at %v", second.Attached(), second.Addresses())
	}
	if _, err := Start(dir, Options{}); !errors.Is(err, ErrRunning) {
		t.Errorf("second start: %v", err)
	}
	if err := errors.Join(second.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(dir); err == nil {
		t.Error("attached to a broker that has ended")
	}
	b, err = Open(deadline(t), dir, Options{Listen: "127.0.0.1:0"})
	if err != nil || b.Attached() {
		t.Fatalf("open after the end: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLockOfADeadProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte(`{"address":"127.0.0.1:1","pid":999999999}`), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Open(deadline(t), dir, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if b.Attached() {
		t.Error("attached to a dead process")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTakenPortIsReplacedAndForeignAddressesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(port), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Start(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Addresses()[0] == l.Addr().String() {
		t.Error("took the address of another process")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"0.0.0.0:0", "192.0.2.1:0", "9092"} {
		if b, err := Start(dir, Options{Listen: a}); err == nil {
			t.Errorf("listens on %s", a)
			b.Close()
		}
	}
}

func TestClosedBrokerLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	b := start(t, t.TempDir())
	cl := client(t, b)
	if err := cl.Ping(deadline(t)); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}
