package processor

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/message"
)

// swiftRecord is a record of the swift stage of rekeySpec: the child of source record offset, whose predecessor was the child of prev;
// prev -1 begins an attempt.
func swiftRecord(t *testing.T, tm *term, offset, prev int64) *kgo.Record {
	t.Helper()
	st := tm.stages[1].plan
	up := st.Inputs[0].Upstream
	schema := st.Inputs[0].Schema
	e := message.Envelope{ID: message.ID{Fingerprint: sourceFingerprint(1, up, up.Inputs[0], tm.job.worker.topology.Topics["in"].ID), Offset: uint64(offset)},
		Schema: schema.Fingerprint(), Swift: true, Start: prev < 0}
	if prev >= 0 {
		e.PrevOffset = uint64(prev)
	}
	row := message.Row{message.StringValue("u"), message.Int64Value(1), message.Int64Value(offset), message.StringValue("")}
	v, err := message.AppendRow(message.AppendEnvelope(nil, &e), schema, row)
	if err != nil {
		t.Fatal(err)
	}
	return &kgo.Record{Topic: "bench.by_user", Value: v, Timestamp: time.UnixMilli(1)}
}

// I6: a record behind a hole is dropped and counted, so are those that follow it; the replay of the next attempt, later in the log,
// brings all of them, and what was there before dies at the frontier. Each message counts once.
func TestRecordsBehindAHoleWaitForTheReplay(t *testing.T) {
	t.Parallel()
	tm := benchTerm(t)
	s := tm.stages[1]
	p, f := s.parts[0], s.parts[0].feeds[0]
	take := func(pairs ...[2]int64) {
		t.Helper()
		var rs []*kgo.Record
		for _, x := range pairs {
			r := swiftRecord(t, tm, x[0], x[1])
			r.Offset = f.position + int64(len(rs))
			rs = append(rs, r)
		}
		f.batch, f.index = kafka.Batch{Records: rs, Next: f.position + int64(len(rs))}, 0
		if n, _, err := s.process(f); err != nil || n != len(rs) {
			t.Fatalf("%d of %d records, %v", n, len(rs), err)
		}
	}
	outputs := func(want int) {
		t.Helper()
		if got := len(tm.open.outputs); got != want {
			t.Errorf("%d outputs, want %d", got, want)
		}
	}
	take([2]int64{3, 1}) // the very first says that something was before it
	outputs(0)
	take([2]int64{1, -1}, [2]int64{3, 1})
	outputs(2)
	take([2]int64{7, 5}, [2]int64{8, 7}) // 5 was lost
	outputs(2)
	if s.stats.gaps != 3 || p.hole == nil {
		t.Errorf("%d gaps, hole %v; want 3 and one", s.stats.gaps, p.hole)
	}
	take([2]int64{3, -1}, [2]int64{5, 3}, [2]int64{7, 5}, [2]int64{8, 7})
	outputs(5)
	if s.stats.duplicates != 1 || p.hole != nil {
		t.Errorf("%d duplicates, hole %v; want 1 and none", s.stats.duplicates, p.hole)
	}
	take([2]int64{5, 3}, [2]int64{8, 7}) // a zombie
	outputs(5)
	if s.stats.in != 5 || s.stats.duplicates != 3 || s.stats.gaps != 3 {
		t.Errorf("%+v", s.stats)
	}
}
