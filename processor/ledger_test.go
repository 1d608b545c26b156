package processor

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/statestore"
)

// totalsSpec is re-key, repartition, count and sum, one output per input; %s is put into the pipeline's head.
const totalsSpec = `
pipeline: totals
jobs: 2
%s
epoch: {max_interval: 50ms}
lease: {session_timeout: 1s, probe_interval: 200ms, transaction_timeout: 2s, ttl: 10s, stall_timeout: 30s}
streams:
  events:  {schema: [{name: user, type: string, required: true}, {name: amount, type: int64}, {name: ts, type: int64}]}
  by_user: {schema: [{name: user, type: string}, {name: amount, type: int64}, {name: ts, type: int64}], partitions: 4}
  totals:  {schema: [{name: user, type: string}, {name: count, type: int64}, {name: sum, type: int64}, {name: ts, type: int64}]}
computations:
  rekey:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: events, parameters: {topic: in, format: json, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: by_user, columns: {user: row.user, amount: row.amount, ts: row.ts}}]}}
    output_stream_ids: [by_user]
  count:
    type: transform
    input_stream_ids: [by_user]
    group_by_schema: [{name: user, type: string}]
    process: {function: aggregate, parameters: {output: totals, fields: {count: {count: {}}, sum: {sum: row.amount}, ts: {last: row.ts}}, emit: update}}
    output_stream_ids: [totals]
    sinks: {out: {type: kafka, input_stream_ids: [totals], parameters: {topic: out, format: json, key: [user]}}}
`

func totals() string { return fmt.Sprintf(totalsSpec, "") }

// totalsLine is one output of the pipeline.
type totalsLine struct {
	User  string `json:"user"`
	Count int64  `json:"count"`
	Sum   int64  `json:"sum"`
	TS    int64  `json:"ts"`
}

// ledger is the input of the totals pipeline and what has to come out: for every user, one line per event in source order. A user's
// events lie in one source partition, so that their order is known (I5).
type ledger struct {
	c    *cluster
	mu   sync.Mutex
	next int64
	want map[string][]totalsLine

	byHash bool // a user's partition is that of its key
}

// New users keep coming, so that a row which should not be in a store is not hidden by one which should.
const ledgerPartitions, ledgerUsers, ledgerGeneration = 2, 7, 150

func newLedger(c *cluster) *ledger { return &ledger{c: c, want: map[string][]totalsLine{}} }

// add produces n more events.
func (l *ledger) add(n int) {
	l.c.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	values := map[int32][]string{}
	for range n {
		i := l.next
		l.next++
		p := int32(i % ledgerPartitions)
		user, amount := fmt.Sprintf("user-%d-%d-%d", p, i/ledgerPartitions%ledgerUsers, i/ledgerGeneration), i%11-3
		line := totalsLine{User: user, Count: 1, Sum: amount, TS: i}
		if before := l.want[user]; len(before) > 0 {
			last := before[len(before)-1]
			line.Count, line.Sum = last.Count+1, last.Sum+amount
		}
		l.want[user] = append(l.want[user], line)
		if l.byHash {
			p = message.Partition([]byte(user), ledgerPartitions)
		}
		values[p] = append(values[p], fmt.Sprintf(`{"user":%q,"amount":%d,"ts":%d}`, user, amount, i))
	}
	for p, v := range values {
		l.c.produce("in", p, v...)
	}
}

// load adds events in small steps until stop is called.
func (l *ledger) load() (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				l.add(6)
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-ended })
}

// check waits until all is consumed, of the given topics or those of the totals pipeline, and compares the output with the fold: each line exactly once, in order per user.
func (l *ledger) check(topics ...string) {
	l.c.t.Helper()
	if topics == nil {
		topics = []string{"in", "totals.by_user"}
	}
	l.c.consumed("totals", topics...)
	l.mu.Lock()
	defer l.mu.Unlock()
	got := map[string][]totalsLine{}
	for _, rs := range l.c.read("out") {
		for _, r := range rs {
			var line totalsLine
			if err := json.Unmarshal(r.Value, &line); err != nil {
				l.c.t.Fatalf("%s: %v", r.Value, err)
			}
			got[line.User] = append(got[line.User], line)
		}
	}
	for user, want := range l.want {
		for i := range max(len(want), len(got[user])) {
			switch {
			case i >= len(want):
				l.c.t.Errorf("%s: %d lines, want %d; the first too many: %+v", user, len(got[user]), len(want), got[user][i])
			case i >= len(got[user]):
				l.c.t.Errorf("%s: %d lines, want %d; the first missing: %+v", user, len(got[user]), len(want), want[i])
			case got[user][i] != want[i]:
				l.c.t.Errorf("%s: line %d is %+v, want %+v", user, i, got[user][i], want[i])
			default:
				continue
			}
			break
		}
		delete(got, user)
	}
	if len(got) > 0 {
		l.c.t.Errorf("users that never were: %v", got)
	}
}

// checkPrefix compares what a stopped worker left on its disk with the changelog replayed up to the offset that it records (I3), and
// tells how many partitions it found.
func (w *worker) checkPrefix(stage, changelog string) (found int) {
	w.c.t.Helper()
	store, err := w.disk.Open()
	if err != nil {
		w.c.t.Fatal(err)
	}
	defer store.Close()
	parts, err := store.Partitions()
	if err != nil {
		w.c.t.Fatal(err)
	}
	log := w.c.read(changelog)
	for _, id := range parts {
		if id.Stage != stage {
			continue
		}
		h, err := store.Acquire(id)
		if err != nil {
			w.c.t.Fatal(err)
		}
		pos, ok, err := h.Position()
		if err != nil || !ok {
			w.c.t.Fatalf("%v: position %v, %v", id, ok, err)
		}
		want := map[string]string{}
		for _, r := range log[id.Partition] {
			if r.Offset >= pos.Offset {
				break
			}
			if want[string(r.Key)] = string(r.Value); len(r.Value) == 0 {
				delete(want, string(r.Key))
			}
		}
		w.comparePartition(h, id, pos, want)
		found++
	}
	return found
}

func (w *worker) comparePartition(h statestore.Handle, id statestore.PartitionID, pos statestore.Position, want map[string]string) {
	w.c.t.Helper()
	foreign := 0
	err := h.Scan(nil, func(key, value []byte) bool {
		if w, ok := want[string(key)]; !ok || w != string(value) {
			foreign++
			return true
		}
		delete(want, string(key))
		return true
	})
	if err != nil || foreign > 0 || len(want) > 0 {
		w.c.t.Errorf("%v at offset %d differs from its changelog: %v, %d rows that the changelog does not have so, %d rows of the changelog not there", id, pos.Offset, err, foreign, len(want))
	}
}
