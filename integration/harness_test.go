package integration

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestLogIsAwaitedLineByLine(t *testing.T) {
	t.Parallel()
	log := NewLog(nil)
	found := make(chan Line, 1)
	go func() {
		line, err := log.Await(within(t, 10*time.Second), 0, func(l Line) bool { return l.Message == "job acquired" && l.Number("job") == 2 })
		if err != nil {
			t.Error(err)
		}
		found <- line
	}()
	for _, part := range []string{"starting\n" + `{"msg":"job acquired","job":1}` + "\n", `{"msg":"job acq`, `uired","job":2,"term":3}` + "\n", "half a li"} {
		if _, err := log.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if line := <-found; line.Number("term") != 3 || line.Field("job") != "2" {
		t.Fatalf("got %+v", line)
	}
	if log.Mark() != 3 {
		t.Fatalf("%d lines", log.Mark())
	}
	log.cut()
	if lines := log.Find(3, func(l Line) bool { return l.Has("half") }); len(lines) != 1 {
		t.Fatalf("the unfinished line was lost: %v", log.Since(0))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := log.Await(ctx, 0, func(Line) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	log := NewLog(nil)
	for i := range maxLogLines + 10 {
		fmt.Fprintf(log, "line %d\n", i)
	}
	if got := len(log.Since(0)); got > maxLogLines || log.Mark() != maxLogLines+10 {
		t.Fatalf("%d lines kept, mark %d", got, log.Mark())
	}
	if last := log.Since(log.Mark() - 1); len(last) != 1 || last[0].Text != fmt.Sprintf("line %d", maxLogLines+9) {
		t.Fatalf("got %v", last)
	}
}

// ticking prints a line at a time, until SIGTERM, which it answers with status 3.
const ticking = `trap 'echo going; exit 3' TERM; i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.01; done`

func TestProcessIsPausedResumedAndEnded(t *testing.T) {
	t.Parallel()
	ctx := within(t, 30*time.Second)
	log := NewLog(nil)
	p, err := StartProcess("ticking", log, log, nil, "bash", "-c", ticking)
	must(t, err)
	t.Cleanup(func() { p.Kill() })
	_, err = log.Await(ctx, 0, func(l Line) bool { return l.Has("tick 3") })
	must(t, err)
	must(t, p.Pause())
	must(t, p.Resume())
	_, err = log.Await(ctx, log.Mark(), func(l Line) bool { return l.Has("tick") })
	must(t, err)
	must(t, p.Terminate())
	if status, err := p.Wait(ctx); err != nil || status != 3 || p.Running() {
		t.Fatalf("status %d, %v", status, err)
	}
	if !log.Since(log.Mark() - 1)[0].Has("going") {
		t.Fatalf("the last line was lost: %s", log.Tail(3))
	}
	must(t, p.Kill())
}

func TestPausedProcessIsKilled(t *testing.T) {
	t.Parallel()
	p, err := StartProcess("ticking", nil, nil, nil, "bash", "-c", ticking)
	must(t, err)
	must(t, p.Pause())
	must(t, p.Kill())
	if status, err := p.Wait(t.Context()); err != nil || status != 128+9 {
		t.Fatalf("status %d, %v", status, err)
	}
}

// TestCommittedRecordsAloneAreRead writes a topic whose log ends in an aborted transaction: that transaction must neither be
// seen nor hold the reader up, and everything wrong that was committed must show in the verdict.
func TestCommittedRecordsAloneAreRead(t *testing.T) {
	t.Parallel()
	server, ctx := theKafka(t), within(t, time.Minute)
	topic := uniqueName("committed")
	must(t, CreateTopic(ctx, server.Brokers, topic, 2, nil))
	t.Cleanup(func() { DeletePipeline(context.Background(), server.Brokers, topic, topic) })
	client, err := connect(server.Brokers, kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	must(t, err)
	defer client.Close()
	ledger := Ledger{Entries: 50, Accounts: 5, Seed: 1}
	var records []*kgo.Record
	for account, steps := range ledger.History() {
		for _, s := range steps {
			records = append(records, &kgo.Record{Key: []byte(account),
				Value: fmt.Appendf(nil, `{"account":"%s","n":%d,"balance":%d,"last_id":"%s"}`, account, s.N, s.Sum, s.Last)})
		}
	}
	transact := func(end kgo.TransactionEndTry, records []*kgo.Record) {
		t.Helper()
		must(t, client.BeginTransaction())
		for _, r := range records {
			client.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, nil)
		}
		must(t, client.Flush(ctx))
		must(t, client.EndTransaction(ctx, end))
	}
	check := func() Verdict {
		t.Helper()
		verdict, err := CheckTopic(ctx, server.Brokers, topic, ledger.History(), DecodeBalance)
		must(t, err)
		return verdict
	}
	transact(kgo.TryCommit, records[:40])
	transact(kgo.TryAbort, records[30:])
	if got := check(); got.Missing != 10 || got.Doubled != 0 || got.Records != 40 {
		t.Fatalf("got %v", got)
	}
	transact(kgo.TryCommit, records[40:])
	if got := check(); !got.Exact() {
		t.Fatalf("got %v", got)
	}
	transact(kgo.TryCommit, records[:1])
	if got := check(); got.Doubled != 1 {
		t.Fatalf("got %v", got)
	}
}

func TestGroupIsDescribedByKafkasOwnTool(t *testing.T) {
	t.Parallel()
	server, ctx := theKafka(t), within(t, time.Minute)
	topic := uniqueName("described")
	must(t, CreateTopic(ctx, server.Brokers, topic, 2, nil))
	t.Cleanup(func() { DeletePipeline(context.Background(), server.Brokers, topic, topic) })
	must(t, Load(ctx, server.Brokers, topic, 0, 100, 0, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "%d", i), Value: []byte("x")}
	}))
	admin, closeAdmin, err := Admin(server.Brokers)
	must(t, err)
	defer closeAdmin()
	ends, err := admin.ListEndOffsets(ctx, topic)
	must(t, err)
	offsets := kadm.Offsets{}
	for _, o := range ends.Offsets().Sorted() {
		offsets.AddOffset(topic, o.Partition, o.At-int64(o.Partition), -1)
	}
	must(t, admin.CommitAllOffsets(ctx, topic, offsets))
	lag, err := Lag(ctx, admin, topic, topic)
	must(t, err)
	rows, err := DescribeGroup(ctx, server, topic)
	needKafka(t, err)
	shown, err := TopicLag(rows, topic, 2)
	must(t, err)
	if lag != 1 || shown != 1 {
		t.Fatalf("counted lag %d, shown lag %d, want 1", lag, shown)
	}
}

func TestServerEndsWithItsHolder(t *testing.T) {
	t.Parallel()
	script, err := KafkaScript(shared.root)
	if testing.Short() {
		t.Skip("skipped by -short: needs a real Kafka")
	}
	needKafka(t, err)
	ctx := within(t, 2*time.Minute)
	server, err := StartKafka(ctx, script, KafkaOptions{TransactionVersion: 1})
	must(t, err)
	pid, err := server.NodePID(1)
	must(t, err)
	features, err := server.Tool(ctx, "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", server.Brokers, "describe")
	must(t, err)
	version := regexp.MustCompile(`(?m)transaction\.version\s.*FinalizedVersionLevel: 1\s`)
	if !version.MatchString(features) {
		t.Errorf("the server was not formatted with transaction.version 1: %s", features)
	}
	must(t, server.Close())
	if alive(pid) {
		t.Fatalf("pid %d is still there", pid)
	}
}
