package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/spec"
)

// Report is what Kafka alone tells of a pipeline: control, the job logs, committed offsets and log ends.
type Report struct {
	Pipeline       string        `json:"pipeline"`
	Run            string        `json:"run"`
	Since          time.Time     `json:"since"`
	Generation     uint64        `json:"generation"`
	Incarnation    string        `json:"incarnation"`
	DynamicVersion uint64        `json:"dynamic_version"`
	Jobs           []JobReport   `json:"jobs"`
	Inputs         []InputReport `json:"inputs"`
	Lag            int64         `json:"lag"` // sum over all inputs, in offsets
}

// JobReport is the last record of a job's log.
type JobReport struct {
	Job         int32            `json:"job"`
	Worker      string           `json:"worker"`
	Last        string           `json:"last"` // kind of the last record
	At          time.Time        `json:"at"`
	Silent      float64          `json:"silent_seconds"`
	Alarm       string           `json:"alarm,omitempty"`
	Term        uint64           `json:"term"`
	Generation  uint64           `json:"generation"`
	EpochTerm   uint64           `json:"epoch_term"`
	EpochNumber uint64           `json:"epoch_number"`
	Stats       []joblog.Stats   `json:"stats"`
	Troubles    []joblog.Trouble `json:"troubles"`
}

// InputReport is the lag of one input topic of one stage.
type InputReport struct {
	Stage      string  `json:"stage"`
	Topic      string  `json:"topic"`
	Group      string  `json:"group"`
	Committed  []int64 `json:"committed"` // by partition; -1: none
	End        []int64 `json:"end"`
	Lag        int64   `json:"lag"`
	NotStarted int     `json:"not_started"` // partitions without a committed offset
}

// NewReport reads a pipeline's report.
func NewReport(ctx context.Context, c *kafka.Cluster, pipeline string) (*Report, error) {
	s, found, err := PeekControl(ctx, c, pipeline)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("there is no pipeline %s on this Kafka", pipeline)
	}
	r := &Report{Pipeline: pipeline, Run: string(s.Run), Since: time.UnixMilli(s.Since).UTC(), Generation: s.Generation, Incarnation: s.Incarnation, DynamicVersion: s.DynamicVersion}
	parsed, faults := spec.Parse("control", []byte(s.Spec))
	if parsed == nil || spec.Refused(faults) {
		return nil, fmt.Errorf("the spec that control holds cannot be read: %v", faults)
	}
	plan, faults := NewPlan(parsed)
	if err := firstFault(faults); err != nil {
		return nil, err
	}
	if err := r.jobs(ctx, c, s, plan); err != nil {
		return nil, err
	}
	return r, r.inputs(ctx, c, plan)
}

func (r *Report) jobs(ctx context.Context, c *kafka.Cluster, s control.State, plan *Plan) error {
	for k := range s.Jobs {
		fold, err := readJobLog(ctx, c, r.Pipeline, k, false)
		if err != nil {
			return err
		}
		v := fold.View()
		j := JobReport{Job: k, Worker: v.Worker, Last: v.Kind.String(), At: time.UnixMilli(v.At).UTC(), Term: v.Term, Generation: v.Generation,
			EpochTerm: v.EpochTerm, EpochNumber: v.EpochNumber, Stats: v.Stats, Troubles: v.Troubles}
		if fold.Ready() {
			silence := time.Since(j.At)
			j.Silent = silence.Seconds()
			if ttl := time.Duration(plan.Spec.Lease.TTL); s.Run == control.Running && silence > ttl {
				j.Alarm = fmt.Sprintf("silent for %v, lease.ttl is %v: no live worker holds it, or its worker cannot reach the cluster", silence.Round(time.Second), ttl)
			}
		} else {
			j.Last, j.Alarm = "nothing", "no worker has acquired this job yet"
		}
		r.Jobs = append(r.Jobs, j)
	}
	return nil
}

func (r *Report) inputs(ctx context.Context, c *kafka.Cluster, plan *Plan) error {
	groups := map[string]map[kafka.TP]int64{}
	for _, st := range plan.Stages {
		for _, in := range st.Inputs {
			if groups[in.Group] == nil {
				var err error
				if groups[in.Group], err = c.CommittedNow(ctx, in.Group); err != nil {
					return err
				}
			}
			ir := InputReport{Stage: st.Name, Topic: in.Topic, Group: in.Group}
			t, err := c.Topic(ctx, in.Topic, true)
			if err != nil {
				return err
			}
			for p := range t.Leaders {
				tp := kafka.TP{Topic: in.Topic, Partition: int32(p)}
				end, err := c.End(ctx, tp, true)
				if err != nil {
					return err
				}
				at, ok := groups[in.Group][tp]
				if !ok {
					at = -1
					ir.NotStarted++
				}
				ir.Committed, ir.End = append(ir.Committed, at), append(ir.End, end)
				ir.Lag += end - max(at, 0)
			}
			r.Inputs = append(r.Inputs, ir)
			r.Lag += ir.Lag
		}
	}
	return nil
}
