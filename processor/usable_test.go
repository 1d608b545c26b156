package processor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/statestore"
	"github.com/kafka-processor/processor/statestore/memory"
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
	w := &Worker{cluster: c.kafka, incarnation: 9, copyLife: time.Hour, topology: &Topology{Topics: map[string]TopicInfo{"log": {ID: id, Partitions: 1}}}}
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
