package processor

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore/memory"
)

const rekeySpec = `
pipeline: bench
jobs: 1
streams:
  events:  {schema: [{name: user, type: string, required: true}, {name: amount, type: int64}, {name: ts, type: int64}, {name: pad, type: string}]}
  by_user: {schema: [{name: user, type: string}, {name: amount, type: int64}, {name: ts, type: int64}, {name: pad, type: string}], partitions: 1}
  totals:  {schema: [{name: user, type: string}, {name: count, type: int64}, {name: sum, type: int64}, {name: ts, type: int64}]}
computations:
  rekey:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: events, parameters: {topic: in, format: json, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: by_user, columns: {user: row.user.reverse(), amount: row.amount, ts: row.ts, pad: row.pad}}]}}
    output_stream_ids: [by_user]
  count:
    type: transform
    input_stream_ids: [by_user]
    group_by_schema: [{name: user, type: string}]
    process: {function: aggregate, parameters: {output: totals, fields: {count: {count: {}}, sum: {sum: row.amount}, ts: {last: row.ts}}, emit: update}}
    output_stream_ids: [totals]
    sinks: {out: {type: kafka, input_stream_ids: [totals], parameters: {topic: out, format: json, key: [user]}}}
`

// benchTerm is a term without Kafka: its records end in the open epoch.
func benchTerm(tb testing.TB) *term {
	s, faults := spec.Parse("bench.yaml", []byte(rekeySpec))
	if spec.Refused(faults) {
		tb.Fatal(faults)
	}
	plan, faults := NewPlan(s)
	if spec.Refused(faults) {
		tb.Fatal(faults)
	}
	w := &Worker{plan: plan, incarnation: 1, log: slog.New(slog.DiscardHandler), topology: &Topology{Partitions: []int32{1, 1}, Topics: map[string]TopicInfo{}}}
	for _, name := range []string{"in", "out", "bench.by_user", "bench.count.state", "bench.jobs"} {
		w.topology.Topics[name] = TopicInfo{Partitions: 1, MaxBytes: 1 << 20}
	}
	t := &term{job: &job{worker: w, log: w.log}, dead: make(chan struct{}), sealedEpochs: make(chan *epochBuffer, 1)}
	t.open = t.newEpoch()
	for _, st := range plan.Stages {
		r, err := t.newStage(st, w.topology, 1)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range r.nodes[0].routes {
			for k := range r.nodes[0].routes[i] {
				r.nodes[0].routes[i][k].swift = false
			}
		}
		p := r.newPart(0, nil)
		if st.StateTopic != "" {
			h, err := memory.Open().Acquire(statePartition(plan, st, 0))
			if err != nil {
				tb.Fatal(err)
			}
			p.state = newPartitionState(h, r.nodes[0].function.States(), 100<<20)
		}
		r.parts = append(r.parts, p)
		t.stages = append(t.stages, r)
	}
	return t
}

func (t *term) flushBench(tb testing.TB) {
	if err := t.seal(); err != nil {
		tb.Fatal(err)
	}
	e := <-t.sealedEpochs
	for _, ch := range e.states {
		ch.part.state.applied = e.number
	}
	t.recycle(e)
}

func benchStage(b *testing.B, stage int, records []*kgo.Record) {
	t := benchTerm(b)
	s := t.stages[stage]
	f := s.parts[0].feeds[0]
	b.ReportAllocs()
	b.ResetTimer()
	done := 0
	for done < b.N {
		f.batch, f.index = kafka.Batch{Records: records, Next: int64(len(records))}, 0
		for f.index < len(records) {
			n, _, err := s.process(f)
			if err != nil || n == 0 {
				b.Fatal(n, err)
			}
			done += n
		}
		t.flushBench(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/record")
}

func sourceRecords(n, keys int) []*kgo.Record {
	var out []*kgo.Record
	for i := range n {
		v := fmt.Appendf(nil, `{"user":"key-%08d","amount":%d,"ts":%d,"pad":"%0120d"}`, i*7919%keys, i%100, 1700000000000000+i, 0)
		out = append(out, &kgo.Record{Topic: "in", Value: v, Offset: int64(i), Timestamp: time.UnixMilli(1700000000000)})
	}
	return out
}

// BenchmarkStageMap is a source record's way through a swift stage: decode, map, key, envelope, record.
func BenchmarkStageMap(b *testing.B) { benchStage(b, 0, sourceRecords(10000, 5000)) }

// BenchmarkStageAggregate is an internal record's way through a transform: envelope, row, state, output, changelog.
func BenchmarkStageAggregate(b *testing.B) {
	t := benchTerm(b)
	s := t.stages[1]
	schema := s.plan.Inputs[0].Schema
	d := message.NewJSONDecoder(schema)
	var records []*kgo.Record
	for i, r := range sourceRecords(10000, 5000) {
		row, err := d.Decode(nil, r.Value)
		if err != nil {
			b.Fatal(err)
		}
		// Fingerprint 0 passes the frontier: the same batch is processed again and again.
		v := message.AppendEnvelope(nil, &message.Envelope{Schema: schema.Fingerprint(), EventTime: 1, SystemTime: 1})
		if v, err = message.AppendRow(v, schema, row); err != nil {
			b.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: "bench.by_user", Value: v, Offset: int64(i), Timestamp: r.Timestamp})
	}
	benchStage(b, 1, records)
}
