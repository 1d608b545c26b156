package processor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/joblog"
)

// I4, I14: two workers share the jobs; one hands over and one dies, each under load, and nothing is lost, doubled or stuck. The dead
// one wakes as a zombie when its jobs have moved (I1).
func TestJobsMoveFromStoppedAndCrashedWorkers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	a, b := c.start(totals(), "a"), c.start(totals(), "b")
	stop := l.load()
	defer stop()
	a.holds(1)
	b.holds(1)
	a.stop()
	b.holds(2)
	d := c.start(totals(), "d")
	d.holds(1)
	b.holds(1)
	before := d.term(d.jobs()[0].ID, 1)
	moved := d.jobs()[0].ID
	d.wire.cut()
	b.holds(2)
	if term := b.term(moved, before+1); term != before+1 && term != before+2 {
		t.Errorf("job %d is in term %d at its new holder, was in %d", moved, term, before)
	}
	l.add(100)
	d.wire.mend() // the zombie tries to go on
	d.saw(1, "term ended")
	d.holds(1)
	l.add(100)
	stop()
	l.check()
	d.stop()
	b.stop()
	b.checkPrefix("totals.count", "totals.count.state")
	d.checkPrefix("totals.count", "totals.count.state")
}

// I1 fenced: somebody else takes a job's transactional id while its worker runs, with an epoch open. The term ends, nothing of it
// becomes visible after the fence, and the next term goes on exactly where the committed epochs end.
func TestTermEndsWhenItsIdIsTakenAndTheNextIsExact(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	w := c.start(totals(), "w")
	stop := l.load()
	defer stop()
	term := w.term(0, 1)
	for range 3 {
		c.steal("totals.job.0")
		next := w.term(0, term+1)
		if next != term+1 {
			t.Errorf("term %d after %d", next, term)
		}
		term = next
	}
	stop()
	l.check()
	c.orderedLog("totals.jobs")
}

const keyedSpec = `
pipeline: totals
jobs: 1
epoch: {max_interval: 20ms}
lease: {session_timeout: 1s, probe_interval: 20s, transaction_timeout: 2s, ttl: 30s, stall_timeout: 30s}
streams:
  events: {schema: [{name: user, type: string, required: true}, {name: amount, type: int64}, {name: ts, type: int64}]}
  totals: {schema: [{name: user, type: string}, {name: count, type: int64}, {name: sum, type: int64}, {name: ts, type: int64}]}
computations:
  count:
    type: transform_ordered_source
    sources: {in: {type: kafka, output_stream_id: events, parameters: {topic: in, format: json, start: earliest}}}
    group_by_schema: [{name: user, type: string}]
    process: {function: aggregate, parameters: {output: totals, fields: {count: {count: {}}, sum: {sum: row.amount}, ts: {last: row.ts}}, emit: update}}
    output_stream_ids: [totals]
    sinks: {out: {type: kafka, input_stream_ids: [totals], parameters: {topic: out, format: json, key: [user]}}}
`

// I2 atomic: where nothing else protects it, no message id, no frontier, no probe in time, the input offset is what makes a message
// count once: it is part of the very transaction that holds the message's state and output.
func TestOffsetsAreCommittedWithTheirEpoch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	w := c.start(strings.Replace(keyedSpec, "start: earliest}", "start: earliest, partitioned_by: [user]}", 1), "w")
	l.byHash = true
	stop := l.load()
	defer stop()
	term := w.term(0, 1)
	for n := range 3 {
		c.eventually("some epochs", func() (bool, string) {
			r, err := NewReport(c.ctx, c.kafka, "totals")
			return err == nil && r.Jobs[0].EpochTerm == term && r.Jobs[0].EpochNumber > uint64(3+n), fmt.Sprint(r, err)
		})
		c.steal("totals.job.0")
		term = w.term(0, term+1)
	}
	stop()
	l.check("in")
}

// steal takes a transactional id from whoever holds it.
func (c *cluster) steal(id string) {
	c.t.Helper()
	thief, err := kgo.NewClient(append(c.options(nil), kgo.TransactionalID(id))...)
	if err != nil {
		c.t.Fatal(err)
	}
	defer thief.Close()
	if _, _, err := thief.ProducerID(c.ctx); err != nil {
		c.t.Fatal(err)
	}
}

// orderedLog folds every job log, which checks the laws of terms, generations and epochs, and returns the records by job.
func (c *cluster) orderedLog(topic string) map[int32][]joblog.Record {
	c.t.Helper()
	out := map[int32][]joblog.Record{}
	for p, rs := range c.read(topic) {
		var fold joblog.Fold
		for _, r := range rs {
			rec, err := joblog.Decode(r.Value)
			if err == nil {
				err = fold.Apply(rec)
			}
			if err != nil {
				c.t.Fatalf("%s/%d offset %d: %v", topic, p, r.Offset, err)
			}
			rec, _ = joblog.Decode(r.Value)
			out[p] = append(out[p], rec)
		}
	}
	return out
}

func (c *cluster) command(kind control.CommandKind) Result {
	c.t.Helper()
	cmd := Commander{Cluster: c.kafka, Pipeline: "totals"}
	r, err := cmd.Run(c.ctx, kind, control.Params{By: CommandName("test"), Now: time.Now().UnixMilli()})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// I11 generation: stop fences every job before it returns; while it is stopped nothing commits, however much there is to do; start
// runs it under the newer generation. The job logs never go back to an older one.
func TestNothingCommitsUnderAFencedGeneration(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	a, b := c.start(totals(), "a"), c.start(totals(), "b")
	stop := l.load()
	defer stop()
	a.holds(1)
	b.holds(1)
	for range 2 {
		r := c.command(control.Stop)
		if r.Kind != control.Done || r.State.Run != control.Stopped {
			t.Fatalf("stop: %+v", r)
		}
		ends := [2]map[int32]int64{c.ends("totals.jobs"), c.ends("out")}
		l.add(200)
		for i, topic := range []string{"totals.jobs", "out"} {
			for p, end := range c.ends(topic) {
				if end != ends[i][p] {
					t.Errorf("%s/%d grew from %d to %d while stopped", topic, p, ends[i][p], end)
				}
			}
		}
		if r := c.command(control.Stop); r.Kind != control.AlreadySo {
			t.Errorf("stop again: %+v", r)
		}
		if r := c.command(control.Start); r.Kind != control.Done || r.State.Run != control.Running {
			t.Fatalf("start: %+v", r)
		}
		a.holds(1)
		b.holds(1)
	}
	stop()
	l.check()
	for job, recs := range c.orderedLog("totals.jobs") {
		if last := recs[len(recs)-1]; last.Generation < 3 {
			t.Errorf("job %d ends in generation %d", job, last.Generation)
		}
	}
}

// I11 for a worker that does not hear of the command: it is alive, holds its leases and commits probes, but control's news never reach
// it. Stop fences it all the same; when it asks for its leases again it reads that its generation is over, and stands down.
func TestWorkerThatIsDeafToControlIsFenced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	l.add(50)
	w := c.start(totals(), "w")
	w.holds(2)
	l.check()
	id := c.broker.TopicInfo("totals.control").TopicID
	var deaf atomic.Int64
	w.wire.decide(func(key int16, frame []byte) fate {
		// The watch waits for news at the broker; who reads control to its end, at an acquisition, does not.
		if key == int16(kmsg.Fetch) && bytes.Contains(frame, id[:]) && fetchWait(frame) >= 100 {
			deaf.Add(1)
			return refuse
		}
		return pass
	})
	c.eventually("the fetch under way ended", func() (bool, string) { return deaf.Load() > 1, "" })
	if r := c.command(control.Stop); r.Kind != control.Done {
		t.Fatalf("stop: %+v", r)
	}
	ends := c.ends("totals.jobs")
	w.saw(2, "term ended")
	w.saw(2, "job stood down", "generation")
	for p, end := range c.ends("totals.jobs") {
		if end != ends[p] {
			t.Errorf("job log %d grew from %d to %d after stop had returned", p, ends[p], end)
		}
	}
	c.orderedLog("totals.jobs")
	w.wire.decide(nil)
	c.command(control.Start)
	w.holds(2)
	l.add(50)
	l.check()
}

// fetchWait is how many milliseconds a fetch request, of version 15 or later, waits for the first byte.
func fetchWait(frame []byte) uint32 {
	client := int(binary.BigEndian.Uint16(frame[12:]))
	return binary.BigEndian.Uint32(frame[14+client+1:])
}

// I4 once, unknown outcome: the answer of EndTxn is lost. Whether the broker carried it out or not, each message counts once.
func TestUnknownOutcomeOfAnEpochCountsOnce(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fate{"not carried out": refuse, "carried out": swallow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, map[string]int32{"in": ledgerPartitions})
			l := newLedger(c)
			w := c.start(totals(), "w")
			w.holds(2)
			l.add(40)
			l.check()
			resolved := []string{"unknown outcome resolved", map[fate]string{refuse: `outcome="not counted"`, swallow: "outcome=counted"}[f]}
			// A round may hit a probe's EndTxn, about which nobody has a doubt: go on until two epochs were hit.
			for round := 0; w.journal.count(resolved...) < 2; round++ {
				if round == 20 {
					t.Fatalf("%d epochs in doubt after %d rounds", w.journal.count(resolved...), round)
				}
				var hits atomic.Int64
				before, acquired := w.journal.count("term ended"), w.journal.count("job acquired")
				w.wire.decide(func(key int16, frame []byte) fate {
					if key != int16(kmsg.EndTxn) || !bytes.Contains(frame, []byte("totals.job.0")) {
						return pass
					}
					if hits.Add(1) == 1 {
						return f
					}
					return refuse // repetitions inside the client
				})
				l.add(60)
				w.saw(before+1, "term ended")
				w.wire.decide(nil)
				if hits.Load() == 0 {
					t.Fatal("no EndTxn was hit")
				}
				w.saw(acquired+1, "job acquired")
				l.check()
			}
			c.orderedLog("totals.jobs")
			w.stop()
			w.checkPrefix("totals.count", "totals.count.state")
		})
	}
}

// I6 swift: a failed produce of a swift record ends the attempt; its source offset is not committed, the next attempt sends all of
// the prefix again, duplicates die at the frontier, and the hole that the failure tore heals.
func TestFailedSwiftRecordEndsTheAttemptAndTheReplayHealsTheHole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	w := c.start(totals(), "w")
	w.holds(2)
	l.add(40)
	l.check()
	for range 3 {
		before := w.journal.count("term ended")
		f := c.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "totals.by_user", Partitions: []int32{1, 2}, Err: kerr.InvalidRecord, Count: 1})
		stop := l.load()
		if err := f.Wait(c.ctx, 1); err != nil {
			t.Fatal(err)
		}
		w.saw(before+1, "term ended")
		stop()
		l.check()
	}
}

// I6, the other half: while an output of a prefix is not acknowledged, its source offset is not committed.
func TestSourceOffsetWaitsForAcknowledgedOutputs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	w := c.start(totals(), "w")
	w.holds(2)
	l.add(40)
	l.check()
	f := c.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "totals.by_user", Err: kerr.NotEnoughReplicas, Count: -1})
	defer f.Remove()
	before := c.ends("in")
	l.add(40)
	if err := f.Wait(c.ctx, 20); err != nil { // the clients try again and again, for much longer than epoch.max_interval
		t.Fatal(err)
	}
	at, err := c.admin.FetchOffsets(c.ctx, "totals")
	if err != nil {
		t.Fatal(err)
	}
	for p, end := range before {
		if o, ok := at.Lookup("in", p); !ok || o.At > end {
			t.Errorf("partition %d: offset %d is committed, outputs from %d on are not acknowledged", p, o.At, end)
		}
	}
	f.Remove()
	l.check()
}

const badSpec = `
pipeline: bad
jobs: 1
epoch: {max_interval: 50ms}
lease: {session_timeout: 1s, probe_interval: 200ms, transaction_timeout: 2s, ttl: 10s, stall_timeout: 30s}
streams:
  in:     {schema: [{name: k, type: string, required: true}, {name: n, type: int64}]}
  out:    {schema: [{name: k, type: string}, {name: q, type: int64}]}
  failed: {schema: [{name: key, type: string}, {name: value, type: string}, {name: topic, type: string}, {name: partition, type: int64}, {name: offset, type: int64}, {name: computation, type: string}, {name: error, type: string}, {name: at, type: timestamp}]}
computations:
  divide:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: in, parameters: {topic: in, format: json, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: out, columns: {k: row.k, q: 60 / row.n}}]}}
    output_stream_ids: [out]
    sinks: {out: {type: kafka, input_stream_ids: [out], parameters: {topic: out, format: json}}}
    on_error: %s
`

func badRecords(c *cluster) {
	c.produce("in", 0, `{"k":"a","n":1}`, `{"k":"zero","n":0}`, `{"k":"a","n":2}`)
	c.produce("in", 1, `{"k":"b","n":1}`, `{"k":"b","n":2}`, `{"k":"b","n":3}`)
}

func (c *cluster) values(topic string) map[int32][]string {
	c.t.Helper()
	out := map[int32][]string{}
	for p, rs := range c.read(topic) {
		for _, r := range rs {
			out[p] = append(out[p], string(r.Value))
		}
	}
	return out
}

// I13 loud, I14 live: a message that fails parks its partition alone; the others go on; status and report name topic, offset and cause.
// What came before it is committed.
func TestFailingMessageParksItsPartitionAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 2, "out": 2})
	badRecords(c)
	w := c.start(fmt.Sprintf(badSpec, "{policy: fail, pause: 50ms}"), "w")
	c.eventually("trouble in the worker's status", func() (bool, string) {
		for _, j := range w.jobs() {
			for _, tr := range j.Troubles {
				return tr.Stage == "divide" && tr.Topic == "in" && tr.Partition == 0 && tr.Offset == 1 && tr.Attempts >= 3 && tr.Cause != "", fmt.Sprintf("%+v", tr)
			}
		}
		return false, fmt.Sprintf("%+v", w.jobs())
	})
	c.eventually("trouble in the report", func() (bool, string) {
		r, err := NewReport(c.ctx, c.kafka, "bad")
		if err != nil {
			return false, err.Error()
		}
		tr := r.Jobs[0].Troubles
		return len(tr) == 1 && tr[0].Offset == 1 && tr[0].Cause != "" && r.Lag == 2, fmt.Sprintf("%+v lag %d", tr, r.Lag)
	})
	c.produce("in", 1, `{"k":"b","n":4}`)
	c.eventually("the other partition goes on", func() (bool, string) {
		got := c.values("out")
		return len(got[1]) == 4 && len(got[0]) == 1, fmt.Sprint(got)
	})
	w.stop()
	// Gone from the topic, it is still not passed over in silence: the log does not have what the group asks for.
	if err := c.broker.DeleteRecords("in", 0, 2); err != nil {
		t.Fatal(err)
	}
	again := c.start(fmt.Sprintf(badSpec, "{policy: fail, pause: 50ms}"), "again")
	c.eventually("the lost record in status", func() (bool, string) {
		for _, j := range again.jobs() {
			for _, tr := range j.Troubles {
				return tr.Topic == "in" && tr.Offset == 1 && strings.Contains(tr.Cause, "not in the log"), fmt.Sprintf("%+v", tr)
			}
		}
		return false, fmt.Sprintf("%+v", again.jobs())
	})
	if got := c.values("out"); len(got[0]) != 1 {
		t.Errorf("outputs of the parked partition: %v", got[0])
	}
}

// I14: while a partition is parked for a long time, its neighbours in the same job are not held up by it.
func TestParkedPartitionDoesNotHoldUpItsNeighbours(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 2, "out": 2})
	badRecords(c)
	w := c.start(fmt.Sprintf(badSpec, "{policy: fail, pause: 1h}"), "w")
	w.saw(1, "partition parked")
	for n := range 5 {
		c.produce("in", 1, `{"k":"b","n":4}`)
		c.eventually("the neighbour's output", func() (bool, string) {
			got := c.values("out")
			return len(got[1]) == 4+n && len(got[0]) == 1, fmt.Sprint(got)
		})
	}
}

// on_error: skip drops the message, counted, and goes on.
func TestSkippedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 2, "out": 2})
	badRecords(c)
	w := c.start(fmt.Sprintf(badSpec, "skip"), "w")
	c.consumed("bad", "in")
	if got := c.values("out"); len(got[0]) != 2 || len(got[1]) != 3 {
		t.Errorf("outputs %v", got)
	}
	c.eventually("one skipped", func() (bool, string) {
		n := w.stat("divide", func(j JobStatus, i int) uint64 { return j.Stats[i].Skipped })
		return n == 1, fmt.Sprint(n)
	})
}

// A dead letter is part of the epoch (I2): it is there exactly once, with where it came from.
func TestDeadLettersAreWrittenInTheEpoch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 2, "out": 2, "bad.failed": 1})
	badRecords(c)
	c.start(fmt.Sprintf(badSpec, "{dead_letter: failed, max_attempts: 2, pause: 20ms}"), "w")
	c.consumed("bad", "in")
	if got := c.values("out"); len(got[0]) != 2 || len(got[1]) != 3 {
		t.Errorf("outputs %v", got)
	}
	letters := c.values("bad.failed")[0]
	if len(letters) != 1 {
		t.Fatalf("dead letters %v", letters)
	}
	for _, want := range []string{`"topic":"in"`, `"partition":0`, `"offset":1`, `"computation":"divide"`, `zero`} {
		if !bytes.Contains([]byte(letters[0]), []byte(want)) {
			t.Errorf("dead letter %s lacks %s", letters[0], want)
		}
	}
}

// I12 bounded: what has been consumed of an internal stream, and of the job log, is deleted.
func TestConsumedInternalRecordsAreTrimmed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the trimming interval")
	}
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	l.add(400)
	w := c.start(totals(), "w")
	l.check()
	w.holds(2)
	for _, topic := range []string{"totals.by_user", "totals.jobs"} {
		c.eventually(topic+" trimmed", func() (bool, string) {
			last := ""
			for _, p := range c.broker.PartitionInfos(topic) {
				if p.HighWatermark > 0 && p.LogStartOffset < p.HighWatermark/2 {
					last += fmt.Sprintf("partition %d begins at %d of %d, ", p.Partition, p.LogStartOffset, p.HighWatermark)
				}
			}
			return last == "", last
		})
	}
	l.add(50)
	l.check()
	w.stop()
	c.start(totals(), "x") // acquires from what is left of the logs
	l.add(50)
	l.check()
}
