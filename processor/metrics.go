package processor

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are a worker's. They are counted once an epoch or read when asked for: nothing happens on the record path.
type Metrics struct {
	Registry *prometheus.Registry

	epochs  prometheus.Counter
	input   prometheus.Counter
	records prometheus.Counter
	commit  prometheus.Histogram
	parts   *prometheus.HistogramVec
	worker  atomic.Pointer[Worker]
}

// NewMetrics makes the registry with all metrics.
func NewMetrics() *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(),
		epochs:  prometheus.NewCounter(prometheus.CounterOpts{Name: "processor_epochs_total", Help: "Committed epochs that carried data."}),
		input:   prometheus.NewCounter(prometheus.CounterOpts{Name: "processor_epoch_input_records_total", Help: "Input records of committed epochs."}),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "processor_epoch_records_total", Help: "Records written inside committed transactions."}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "processor_commit_seconds", Help: "Time from the first produce of an epoch to the answer of EndTxn, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
		parts: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "processor_commit_part_seconds", Help: "Parts of a commit: waiting for swift acknowledgements, produce, offsets, end, apply to the local store, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}, []string{"part"}),
	}
	m.Registry.MustRegister(m.epochs, m.input, m.records, m.commit, m.parts, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &jobCollector{m})
	return m
}

func (m *Metrics) committed(_ int32, took time.Duration, input, records int) {
	m.epochs.Inc()
	m.input.Add(float64(input))
	m.records.Add(float64(records))
	m.commit.Observe(took.Seconds())
}

// partNames are the labels of the parts of a commit, in order.
var partNames = [5]string{"acknowledge", "produce", "offsets", "end", "apply"}

func (m *Metrics) took(parts [5]time.Duration) {
	for i, d := range parts {
		m.parts.WithLabelValues(partNames[i]).Observe(d.Seconds())
	}
}

// jobCollector reads the jobs' statistics when asked.
type jobCollector struct{ m *Metrics }

var (
	stageDesc = prometheus.NewDesc("processor_stage_records_total", "Records of a stage in the present term, by what happened to them.", []string{"job", "stage", "kind"}, nil)
	parkDesc  = prometheus.NewDesc("processor_parked_partitions", "Stage partitions that wait before a message that failed.", []string{"job", "stage"}, nil)
	heldDesc  = prometheus.NewDesc("processor_job_running", "1 while this worker processes for the job.", []string{"job"}, nil)
)

// Describe is prometheus.Collector's.
func (c *jobCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- stageDesc
	ch <- parkDesc
	ch <- heldDesc
}

// Collect is prometheus.Collector's.
func (c *jobCollector) Collect(ch chan<- prometheus.Metric) {
	w := c.m.worker.Load()
	if w == nil {
		return
	}
	for _, j := range w.Jobs() {
		held := 0.0
		if j.Phase == "running" {
			held = 1
		}
		ch <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, held, j.Label)
		for _, s := range j.Stats {
			for kind, n := range map[string]uint64{"in": s.In, "out": s.Out, "skipped": s.Skipped, "dead_letter": s.DeadLetter, "duplicate": s.Duplicates, "gap": s.Gaps, "foreign": s.Foreign} {
				ch <- prometheus.MustNewConstMetric(stageDesc, prometheus.CounterValue, float64(n), j.Label, s.Stage, kind)
			}
		}
		parked := map[string]int{}
		for _, t := range j.Troubles {
			parked[t.Stage]++
		}
		for stage, n := range parked {
			ch <- prometheus.MustNewConstMetric(parkDesc, prometheus.GaugeValue, float64(n), j.Label, stage)
		}
	}
}
