package processor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/kafka-processor/processor/processor/control"
)

// Two workers that find no pipeline both try to create it: control's compare-and-set lets one do it, the other adopts.
func TestOneOfTwoWorkersCreatesThePipeline(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	l.add(100)
	a, b := c.start(totals(), "a"), c.start(totals(), "b")
	a.holds(1)
	b.holds(1)
	l.check()
	s, found, err := ReadControl(c.ctx, c.kafka, "totals")
	if err != nil || !found || s.Generation != 1 {
		t.Errorf("control: generation %d, found %v, %v", s.Generation, found, err)
	}
	if n := a.journal.count("pipeline created") + b.journal.count("pipeline created"); n == 0 {
		t.Error("nobody says that the pipeline was created")
	}
	incarnations := map[string]bool{}
	for _, r := range c.read("totals.control")[0] {
		got, err := control.Decode(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		incarnations[got.Incarnation] = true
	}
	if len(incarnations) != 1 {
		t.Errorf("%d incarnations were written", len(incarnations))
	}
}

// A worker whose file differs from control is refused and shows the difference; control and the running worker are as before.
func TestAnotherSpecIsRefusedWithTheDifference(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	a := c.start(totals(), "a")
	a.holds(2)
	b := c.start(strings.Replace(totals(), "sum: row.amount", "sum: row.ts", 1), "b")
	b.ended()
	if !errors.Is(b.err, ErrDifferentSpec) || !strings.Contains(b.err.Error(), "row.ts") || !strings.Contains(b.err.Error(), "row.amount") {
		t.Errorf("the other spec: %v", b.err)
	}
	l := newLedger(c)
	l.add(50)
	l.check()
}

// A source that does not exist is waited for, with the command that makes it.
func TestMissingSourceIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	w := c.start(totals(), "w")
	w.saw(1, "waiting for a source", "processor topic create in")
	if err := c.broker.CreateTopic("in", ledgerPartitions, nil); err != nil {
		t.Fatal(err)
	}
	l := newLedger(c)
	l.add(50)
	l.check()
}

// Topics that do not fit are refused, all at once, each with the command that mends it.
func TestWrongTopicsAreRefusedWithWhatMendsThem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 2, "totals.by_user": 3})
	keep := "delete"
	if err := c.broker.CreateTopic("totals.count.state", 4, map[string]string{"cleanup.policy": keep}); err != nil {
		t.Fatal(err)
	}
	w := c.start(totals(), "w")
	w.ended()
	if w.err == nil {
		t.Fatal("the topics were taken")
	}
	for _, want := range []string{"totals.by_user has 3 partitions, the spec needs 4", "processor topic alter totals.by_user --partitions 4",
		"totals.count.state has cleanup.policy=delete", "processor topic alter totals.count.state --config cleanup.policy=compact"} {
		if !strings.Contains(w.err.Error(), want) {
			t.Errorf("%q is not in: %v", want, w.err)
		}
	}
	if _, found, err := ReadControl(c.ctx, c.kafka, "totals"); found || err != nil {
		t.Errorf("a pipeline was created: %v, %v", found, err)
	}
}

// A source topic that was deleted and made again has other offsets: nobody goes on with it.
func TestRecreatedSourceIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	w := c.start(totals(), "w")
	l.add(50)
	l.check()
	w.stop()
	if err := c.broker.DeleteTopic("in"); err != nil {
		t.Fatal(err)
	}
	if err := c.broker.CreateTopic("in", ledgerPartitions, nil); err != nil {
		t.Fatal(err)
	}
	again := c.start(totals(), "again")
	again.ended()
	if again.err == nil || !strings.Contains(again.err.Error(), "topic in was deleted and made again") {
		t.Errorf("the new topic: %v", again.err)
	}
}

// Of two live processes with one name the older is fenced by the broker and ends; it does not throw the newer one out of the group.
func TestOlderProcessOfANameEndsAndLeavesTheNewerAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	a := c.start(totals(), "same")
	a.holds(2)
	leaves := c.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.LeaveGroup}, Observe: true, Count: -1})
	b := c.start(totals(), "same")
	a.ended()
	if !errors.Is(a.err, ErrLeft) || !strings.Contains(a.err.Error(), `another process runs under the name "same"`) {
		t.Errorf("the older process: %v", a.err)
	}
	if n := leaves.Hits(); n != 0 {
		t.Errorf("%d times the group was asked to drop the name, which is the newer process's", n)
	}
	b.holds(2)
	l := newLedger(c)
	l.add(50)
	l.check()
}

// A clean stop commits what was processed, also when the next transaction would not be due yet.
func TestStopCommitsWhatWasProcessed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	text := strings.Replace(totals(), "epoch: {max_interval: 50ms}", "epoch: {max_interval: 2s, settle: 2s}", 1)
	w := c.start(strings.Replace(text, "transaction_timeout: 2s", "transaction_timeout: 5s", 1), "w")
	w.holds(2)
	l := newLedger(c)
	l.add(30)
	l.check() // the epoch is committed; no other may close for a while
	l.add(30)
	c.eventually("all events went through the swift stage", func() (bool, string) {
		n := int64(0)
		for _, end := range c.ends("totals.by_user") {
			n += end
		}
		return n == 60, fmt.Sprint(n)
	})
	w.stop()
	at, err := c.admin.FetchOffsets(c.ctx, "totals")
	if err != nil {
		t.Fatal(err)
	}
	for p, end := range c.ends("in") {
		if o, ok := at.Lookup("in", p); !ok || o.At != end {
			t.Errorf("partition %d: stopped at offset %d, all %d were processed", p, o.At, end)
		}
	}
}

// Not parallel: nothing of a worker is left running that was stopped while a job of it waited for a heartbeat that never came.
func TestWorkerStoppedWhileItAwaitsAHeartbeatLeavesNothingBehind(t *testing.T) {
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	before := goleak.IgnoreCurrent()
	w := c.start(strings.Replace(totals(), "session_timeout: 1s", "session_timeout: 8s", 1), "w")
	w.holds(2)
	w.wire.decide(func(key int16, _ []byte) fate {
		if key == int16(kmsg.Heartbeat) {
			return refuse
		}
		return pass
	})
	c.steal("totals.job.0")
	c.eventually("job 0 awaits a heartbeat", func() (bool, string) {
		jobs := w.jobs()
		return len(jobs) == 2 && jobs[0].Phase == "awaiting heartbeat", fmt.Sprintf("%+v", jobs)
	})
	w.cancel()
	w.ended()
	var err error
	for range 10 { // each looks for about half a second
		if err = goleak.Find(before); err == nil {
			return
		}
	}
	t.Error(err)
}
