package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestSpecsRunUnchanged: the example specs work as they are, on a real Kafka and on a broker inside the process.
func TestSpecsRunUnchanged(t *testing.T) {
	t.Parallel()
	t.Run("on Kafka", func(t *testing.T) {
		t.Parallel()
		server := theKafka(t)
		for _, e := range examples() { // one by one: some share their topics
			t.Run(e.name, func(t *testing.T) { e.onKafka(t, server.Brokers) })
		}
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		for _, e := range examples() {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				e.embedded(t)
			})
		}
	})
}

// example is a spec with an input and the outputs that it must give.
type example struct {
	name, source, out string
	inputs            []string
	records           int
	record            func(int) *kgo.Record
	history           History
	decode            Decoder
}

func examples() []example {
	ledger := Ledger{Entries: 2000, Accounts: 50, Seed: 9}
	events := Events{Records: 2000, Users: 100, Seed: 10}
	lines := []string{"To be or not to be", "that is  the question", "", "TO BE"}
	return []example{
		{"word-count", "lines", "counts", []string{"lines", "word-count.words"}, len(lines),
			func(i int) *kgo.Record { return &kgo.Record{Value: []byte(lines[i])} }, WordHistory(lines), DecodeWord},
		{"ledger", "entries", "balances", []string{"entries", "ledger.postings"}, ledger.Entries,
			ledger.Record, ledger.History(), DecodeBalance},
		{"peer-count", "in", "out", []string{"in"}, events.Records,
			events.Record, events.History(events.Records, Same), DecodeTotal},
		{"peer-rekey", "in", "out", []string{"in", "peer-rekey.by_user"}, events.Records,
			events.Record, events.History(events.Records, Reversed), DecodeTotal},
	}
}

// onKafka fails when a topic of the example's is already there: on somebody's own Kafka it may be somebody's data.
func (e example) onKafka(t *testing.T, brokers string) {
	must(t, CreateTopic(within(t, time.Minute), brokers, e.source, sourcePartitions, nil))
	w := e.start(t, brokers, "")
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		endWorker(t, w, e.name)
		if err := DeletePipeline(ctx, brokers, e.name, e.source, e.out); err != nil {
			t.Error(err)
		}
	}()
	e.feedAndCheck(t, w, brokers)
}

func (e example) embedded(t *testing.T) {
	folder := t.TempDir()
	w := e.start(t, "", folder)
	defer endWorker(t, w, e.name)
	brokers := embeddedAddress(t, w, folder)
	ctx := within(t, time.Minute)
	admin, closeAdmin, err := Admin(brokers)
	must(t, err)
	defer closeAdmin()
	must(t, poll(ctx, "the embedded broker gets topic "+e.source, func() (bool, error) {
		topics, err := admin.ListTopics(ctx, e.source)
		return err == nil && topics.Has(e.source) && topics[e.source].Err == nil, nil
	}))
	e.feedAndCheck(t, w, brokers)
}

func (e example) start(t *testing.T, brokers, embedded string) *Worker {
	t.Helper()
	w, err := StartWorker(WorkerOptions{
		Binary: theBinary(t), Spec: filepath.Join(shared.root, "examples", "specs", e.name+".yaml"),
		Name: "only", Data: t.TempDir(), Brokers: brokers, Embedded: embedded,
	})
	must(t, err)
	t.Cleanup(func() { w.Kill() })
	return w
}

// feedAndCheck also ends the worker as a service manager does: a clean SIGTERM is status 0.
func (e example) feedAndCheck(t *testing.T, w *Worker, brokers string) {
	t.Helper()
	ctx := within(t, time.Minute)
	must(t, Load(ctx, brokers, e.source, 0, e.records, 0, e.record))
	must(t, AwaitDrained(ctx, brokers, e.name, e.inputs...))
	verdict, err := CheckTopic(ctx, brokers, e.out, e.history, e.decode)
	must(t, err)
	if !verdict.Exact() {
		t.Errorf("outputs of %s are wrong: %v", e.name, verdict)
	}
	must(t, w.Terminate())
	if status, err := w.Wait(within(t, 30*time.Second)); err != nil || status != 0 {
		t.Errorf("SIGTERM ended the worker with status %d, %v", status, err)
	}
}

// embeddedAddress reads the broker's address where a second process would look for it, in its folder's lock file.
func embeddedAddress(t *testing.T, w *Worker, folder string) string {
	t.Helper()
	var owner struct{ Address string }
	must(t, poll(within(t, time.Minute), "the embedded broker's address", func() (bool, error) {
		if !w.Running() {
			return false, fmt.Errorf("the worker has ended: %s", w.Log.Tail(5))
		}
		text, err := os.ReadFile(filepath.Join(folder, "lock"))
		return err == nil && json.Unmarshal(text, &owner) == nil && owner.Address != "", nil
	}))
	return owner.Address
}
