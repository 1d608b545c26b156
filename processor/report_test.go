package processor

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// I13: a report is of what is committed; it does not wait for a transaction that a sleeping holder has left open in a job log.
func TestReportDoesNotWaitForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	w := c.start(totals(), "w")
	w.holds(2)
	cl, err := kgo.NewClient(append(c.options(nil), kgo.TransactionalID("sleeper"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"totals.jobs", "totals.control"} {
		if err := cl.ProduceSync(c.ctx, &kgo.Record{Topic: topic, Value: []byte("never committed")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, 10*time.Second)
	defer cancel()
	r, err := NewReport(ctx, c.kafka, "totals")
	if err != nil {
		t.Fatalf("the report waited: %v", err)
	}
	if len(r.Jobs) != 2 || r.Jobs[0].Worker != "w" {
		t.Errorf("%+v", r.Jobs)
	}
	if err := cl.EndTransaction(c.ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}
