package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const readHead = "    type: swift_ordered_source\n"

// badKey is the account under which the record that is no JSON lies.
const (
	badKey   = "account-000001"
	badValue = `{"id":"e-bad","account":`
)

// badLedger is a ledger with a record in its middle that cannot be decoded.
type badLedger struct {
	*pipeline
	ledger    Ledger
	partition int32
	offset    int64
	behind    int64 // records of the bad partition from the bad one on
	before    History
}

func newBadLedger(t *testing.T, pairs ...string) *badLedger {
	t.Helper()
	b := &badLedger{pipeline: newPipeline(t, theKafka(t), "ledger", pairs...), ledger: Ledger{Entries: 4000, Accounts: 200, Seed: 11}}
	half := b.ledger.Entries / 2
	b.load(0, half, 0, b.ledger.Record)
	b.load(0, 1, 0, func(int) *kgo.Record { return &kgo.Record{Key: []byte(badKey), Value: []byte(badValue)} })
	b.load(half, b.ledger.Entries, 0, b.ledger.Record)
	records := map[int32][]*kgo.Record{}
	must(t, ReadCommitted(within(t, time.Minute), b.server.Brokers, b.source, func(r *kgo.Record) {
		records[r.Partition] = append(records[r.Partition], r)
	}))
	b.before = History{}
	for partition, all := range records {
		for i, r := range all {
			if string(r.Value) == badValue {
				b.partition, b.offset, b.behind = partition, r.Offset, int64(len(all)-i)
				break
			}
			var e Entry
			must(t, json.Unmarshal(r.Value, &e))
			b.before.post(e)
		}
	}
	if b.behind < 2 || b.offset == 0 {
		t.Fatalf("the bad record lies at the edge of its partition: %d before, %d from it on", b.offset, b.behind)
	}
	return b
}

func TestBadInputUnderFailParksItsPartitionAlone(t *testing.T) {
	t.Parallel()
	b := newBadLedger(t, readHead, readHead+"    on_error: fail\n")
	b.worker("only")
	ctx := within(t, time.Minute)
	admin, closeAdmin, err := Admin(b.server.Brokers)
	must(t, err)
	defer closeAdmin()
	must(t, poll(ctx, "all but the bad partition is processed", func() (bool, error) {
		lag, err := Lag(ctx, admin, b.name, b.source)
		return err == nil && lag == b.behind, nil
	}))
	must(t, AwaitDrained(ctx, b.server.Brokers, b.name, b.internal))
	b.exact(b.before, DecodeBalance)
	b.awaitFault(badKey, b.offset)
}

// awaitFault waits until the status names a record that blocks: its key (the beginning of a long one), offset and why.
func (p *pipeline) awaitFault(key string, offset int64) {
	p.t.Helper()
	var status any
	err := poll(within(p.t, 30*time.Second), "the status shows the fault", func() (bool, error) {
		status = p.status()
		return anyObject(status, func(o map[string]any) bool {
			cause, _ := o["cause"].(string)
			shown, _ := o["key"].(string)
			at, isNumber := o["offset"].(float64)
			return cause != "" && len(shown) >= min(len(key), 16) && strings.HasPrefix(key, shown) && isNumber && int64(at) == offset
		}), nil
	})
	if err != nil {
		text, _ := json.Marshal(status)
		p.t.Fatalf("no object with key %.40q, offset %d and a cause in the status: %v: %.4000s", key, offset, err, text)
	}
}

// anyObject looks for an object in a JSON value, its members' names in lower case.
func anyObject(v any, holds func(map[string]any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		lower := make(map[string]any, len(v))
		for name, member := range v {
			lower[strings.ToLower(name)] = member
		}
		if holds(lower) {
			return true
		}
		for _, member := range v {
			if anyObject(member, holds) {
				return true
			}
		}
	case []any:
		for _, member := range v {
			if anyObject(member, holds) {
				return true
			}
		}
	}
	return false
}

func TestBadInputUnderSkipIsCounted(t *testing.T) {
	t.Parallel()
	b := newBadLedger(t, readHead, readHead+"    on_error: skip\n")
	w := b.worker("only")
	b.drained(time.Minute)
	b.exact(b.ledger.History(), DecodeBalance)
	skipped := regexp.MustCompile(`(?m)^processor_stage_records_total\{.*kind="skipped".*\} (\S+)$`)
	ctx, got := within(t, 10*time.Second), 0.0
	err := poll(ctx, "metrics count the skipped message", func() (bool, error) {
		var err error
		got, err = metric(ctx, w, skipped)
		return got == 1, err
	})
	if err != nil {
		t.Errorf("%v; they count %v", err, got)
	}
}

// metric sums the samples of /metrics that match; the expression's group is the value.
func metric(ctx context.Context, w *Worker, sample *regexp.Regexp) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.HTTP+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, found := range sample.FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, nil
}

const badStream = `  bad: {schema: [{name: key, type: string}, {name: value, type: string}, {name: topic, type: string}, {name: partition, type: int64}, {name: offset, type: int64}, {name: computation, type: string}, {name: error, type: string}, {name: at, type: timestamp}]}
`

// TestBadInputGoesToTheDeadLettersOnce (I2): the dead letter is part of the epoch, so also a worker killed meanwhile leaves one.
func TestBadInputGoesToTheDeadLettersOnce(t *testing.T) {
	t.Parallel()
	letters := uniqueName("letters")
	b := newBadLedger(t,
		readHead, readHead+"    on_error: {dead_letter: bad}\n",
		"  balances: {schema", badStream+"  balances: {schema",
		"    output_stream_ids: [postings]\n", "    output_stream_ids: [postings, bad]\n    sinks:\n"+
			"      letters: {type: kafka, input_stream_ids: [bad], parameters: {topic: "+letters+", format: json}}\n")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := DeletePipeline(ctx, b.server.Brokers, letters, letters); err != nil {
			t.Logf("left behind: %v", err)
		}
	})
	w := b.worker("only")
	b.awaitJobs(w, 0, 4, time.Minute)
	must(t, w.Kill())
	must(t, w.Start())
	b.drained(time.Minute)
	b.exact(b.ledger.History(), DecodeBalance)
	var found []string
	must(t, ReadCommitted(within(t, time.Minute), b.server.Brokers, letters, func(r *kgo.Record) { found = append(found, string(r.Value)) }))
	if len(found) != 1 {
		t.Fatalf("%d dead letters, want 1: %v", len(found), found)
	}
	var letter struct {
		Key, Value, Topic, Computation, Error, At string
		Partition                                 int32
		Offset                                    int64
	}
	must(t, json.Unmarshal([]byte(found[0]), &letter))
	if letter.Key != badKey || letter.Value != badValue || letter.Topic != b.source || letter.Partition != b.partition ||
		letter.Offset != b.offset || letter.Computation != "read" || letter.Error == "" {
		t.Errorf("dead letter %s", found[0])
	}
	if _, err := time.Parse(time.RFC3339Nano, letter.At); err != nil {
		t.Errorf("dead letter's time: %v", err)
	}
}

// TestWrongBrokerAddressIsNamed: a worker that cannot reach Kafka says which address, keeps trying, and still ends on SIGTERM.
func TestWrongBrokerAddressIsNamed(t *testing.T) {
	t.Parallel()
	address, err := FreeAddress()
	must(t, err)
	nobody := &KafkaServer{Brokers: address}
	text, err := ExampleSpec(shared.root, "ledger")
	must(t, err)
	p := &pipeline{t: t, server: nobody, binary: theBinary(t), name: "ledger", folder: t.TempDir(), spec: writeFile(t, "spec.yaml", text)}
	w := p.worker("only")
	for range 2 { // it goes on saying so
		_, err = w.Await(within(t, time.Minute), w.Log.Mark(), func(l Line) bool { return strings.Contains(l.Text, address) })
		must(t, err)
	}
	if !w.Running() {
		t.Fatal("the worker gave up")
	}
	must(t, w.Terminate())
	if _, err := w.Wait(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
}

func TestTopicWithTooFewPartitionsIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, theKafka(t), "ledger")
	must(t, CreateTopic(within(t, time.Minute), p.server.Brokers, p.internal, 2, nil))
	w := p.worker("only")
	status, err := w.Wait(within(t, time.Minute))
	must(t, err)
	if status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	said := w.Log.Find(0, func(l Line) bool {
		return strings.Contains(l.Text, p.internal) && strings.Contains(l.Text, "processor topic ")
	})
	if len(said) == 0 {
		t.Errorf("no line names topic %s and the command that mends it: %s", p.internal, w.Log.Tail(10))
	}
}

// TestRecordLargerThanTheBrokerTakesParksItsPartitionAlone: the status names the message whose output Kafka does not take; all
// others go on; with a higher limit it goes through.
func TestRecordLargerThanTheBrokerTakesParksItsPartitionAlone(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, theKafka(t), "word-count")
	must(t, CreateTopic(within(t, time.Minute), p.server.Brokers, p.out, 8, map[string]string{"max.message.bytes": "50000"}))
	long := strings.Repeat("x", 100_000)
	lines := []string{"a b c d e f g h i j", long}
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("a word-%d b", i))
	}
	w := p.worker("only")
	p.load(0, len(lines), 0, func(i int) *kgo.Record { return &kgo.Record{Key: fmt.Appendf(nil, "%d", i), Value: []byte(lines[i])} })
	must(t, AwaitDrained(within(t, time.Minute), p.server.Brokers, p.name, p.source))
	partition, offset := locate(t, p, long)
	admin, closeAdmin, err := Admin(p.server.Brokers)
	must(t, err)
	defer closeAdmin()
	must(t, awaitOthers(within(t, time.Minute), admin, p.name, p.internal, partition))
	p.awaitFault(long, offset)
	limit := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("1000000")}
	_, err = admin.AlterTopicConfigs(within(t, time.Minute), []kadm.AlterConfig{limit}, p.out)
	must(t, err)
	must(t, w.Kill())
	must(t, w.Start())
	p.drained(time.Minute)
	p.exact(WordHistory(lines), DecodeWord)
}

// locate finds a record of the internal topic by its key.
func locate(t *testing.T, p *pipeline, key string) (partition int32, offset int64) {
	t.Helper()
	partition = -1
	must(t, ReadCommitted(within(t, time.Minute), p.server.Brokers, p.internal, func(r *kgo.Record) {
		if string(r.Key) == key {
			partition, offset = r.Partition, r.Offset
		}
	}))
	if partition < 0 {
		t.Fatalf("topic %s has no record with the key", p.internal)
	}
	return partition, offset
}

// awaitOthers waits until all partitions of a topic but one are processed to their ends.
func awaitOthers(ctx context.Context, admin *kadm.Client, group, topic string, but int32) error {
	return poll(ctx, "the other partitions of "+topic, func() (bool, error) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return false, nil
		}
		committed, err := admin.FetchOffsets(ctx, group)
		if err != nil {
			return false, nil
		}
		for partition, end := range ends[topic] {
			if o, ok := committed.Lookup(topic, partition); partition != but && end.Offset > 0 && (!ok || o.At < end.Offset) {
				return false, nil
			}
		}
		return true, nil
	})
}
