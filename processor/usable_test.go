package processor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore"
	"github.com/kafka-processor/processor/statestore/memory"
	"github.com/twmb/franz-go/pkg/kadm"
)

// A local copy is used only if it surely is a prefix of this changelog and missed no deletion; else it is rebuilt, and says why (I3).
func TestLocalCopyIsRebuiltUnlessItIsAPrefix(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"log": 1})
	var values []string
	for i := range 20 {
		values = append(values, fmt.Sprint(i))
	}
	c.produce("log", 0, values...)
	if err := c.broker.DeleteRecords("log", 0, 5); err != nil {
		t.Fatal(err)
	}
	id := [16]byte(c.broker.TopicInfo("log").TopicID)
	w := &Worker{cluster: c.kafka, incarnation: 9, topology: &Topology{Topics: map[string]TopicInfo{"log": {ID: id, Partitions: 1, CopyLife: time.Hour}}}}
	p := &part{stage: &stageRun{term: &term{job: &job{worker: w}}}}
	now := time.Now().UnixMilli()
	good := statestore.Position{Topic: id, Incarnation: 9, Offset: 12, AtEnd: now}
	for name, test := range map[string]struct {
		change func(*statestore.Position)
		why    string
	}{
		"in the middle":       {func(*statestore.Position) {}, ""},
		"at the start":        {func(p *statestore.Position) { p.Offset = 5 }, ""},
		"at the end":          {func(p *statestore.Position) { p.Offset = 20 }, ""},
		"recreated topic":     {func(p *statestore.Position) { p.Topic[3]++ }, "recreated"},
		"another incarnation": {func(p *statestore.Position) { p.Incarnation = 8 }, "reset"},
		"below the start":     {func(p *statestore.Position) { p.Offset = 4 }, "begins behind"},
		"above the end":       {func(p *statestore.Position) { p.Offset = 21 }, "ahead"},
		"away for too long":   {func(p *statestore.Position) { p.AtEnd = now - 61*60*1000 }, "deleted keys"},
		"almost too long":     {func(p *statestore.Position) { p.AtEnd = now - 58*60*1000 }, ""},
	} {
		h, err := memory.Open().Acquire(statestore.PartitionID{Stage: "s"})
		if err != nil {
			t.Fatal(err)
		}
		pos := good
		test.change(&pos)
		if err := h.Apply(nil, pos); err != nil {
			t.Fatal(err)
		}
		from, bound, why, err := p.usable(c.ctx, h, kafka.TP{Topic: "log"})
		want := pos.Offset
		if test.why != "" {
			want = 5
		}
		if err != nil || from != want || bound != 20 || (test.why == "") != (why == "") || !strings.Contains(why, test.why) {
			t.Errorf("%s: from %d to %d, %q, %v; want from %d to 20, %q", name, from, bound, why, err, want, test.why)
		}
	}
	h, err := memory.Open().Acquire(statestore.PartitionID{Stage: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if from, bound, why, err := p.usable(c.ctx, h, kafka.TP{Topic: "log"}); err != nil || from != 5 || bound != 20 || why == "" {
		t.Errorf("nothing there: from %d to %d, %q, %v", from, bound, why, err)
	}
}

// I3: how long a copy may have been away follows from the changelog's own delete.retention.ms, not from Kafka's default.
func TestCopyLifeIsHalfOfTheChangelogsDeleteRetention(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	s, faults := spec.Parse("totals.yaml", []byte(totals()))
	if spec.Refused(faults) {
		t.Fatal(faults)
	}
	plan, _ := NewPlan(s)
	if _, err := plan.Ensure(c.ctx, c.kafka, EnsureOptions{Replication: -1}); err != nil {
		t.Fatal(err)
	}
	value := "7200000"
	changed, err := c.admin.AlterTopicConfigs(c.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "delete.retention.ms", Value: &value}}, "totals.count.state")
	if err == nil {
		_, err = changed.On("totals.count.state", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	top, err := plan.Ensure(c.ctx, c.kafka, EnsureOptions{Replication: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := top.Topics["totals.count.state"].CopyLife; got != time.Hour {
		t.Errorf("a copy may be away for %v, want 1h", got)
	}
}
