package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/joblog"
	"github.com/kafka-processor/processor/spec"
)

// commandTimeout is the transaction time-out of commands: they hold none open for longer than a write takes.
const commandTimeout = 15 * time.Second

// ReadControl reads a pipeline's control topic to its read-uncommitted end. found is false if there is no such pipeline.
func ReadControl(ctx context.Context, c *kafka.Cluster, pipeline string) (s control.State, found bool, err error) {
	s, _, found, err = readControlAt(ctx, c, pipeline, false)
	return s, found, err
}

// PeekControl reads what is committed and waits for no command that is writing, or died while it was: for reports.
func PeekControl(ctx context.Context, c *kafka.Cluster, pipeline string) (s control.State, found bool, err error) {
	s, _, found, err = readControlAt(ctx, c, pipeline, true)
	return s, found, err
}

// readControlAt also tells the position behind what was read.
func readControlAt(ctx context.Context, c *kafka.Cluster, pipeline string, stable bool) (s control.State, next int64, found bool, err error) {
	tp := kafka.TP{Topic: spec.ControlTopic(pipeline)}
	if _, err := c.Topic(ctx, tp.Topic, true); errors.Is(err, kerr.UnknownTopicOrPartition) {
		return s, 0, false, nil
	} else if err != nil {
		return s, 0, false, err
	}
	from, err := c.Start(ctx, tp)
	if err != nil {
		return s, 0, false, err
	}
	end, err := c.End(ctx, tp, stable)
	if err != nil {
		return s, 0, false, err
	}
	next = from
	err = c.ReadTo(ctx, tp, from, end, func(records []*kgo.Record, at int64) error {
		next = at
		for _, r := range records {
			if s, err = control.Decode(r.Value); err != nil {
				return fmt.Errorf("%v offset %d: %w", tp, r.Offset, err)
			}
			found = true
		}
		return nil
	})
	return s, next, found, err
}

// Commander carries out commands on a pipeline. Each returns only when what it wants is true; then nothing old can commit.
type Commander struct {
	Cluster  *kafka.Cluster
	Pipeline string
	// Progress is told each step, for the terminal.
	Progress func(step string)

	control *kafka.Transactional
	job     *kafka.Transactional
	fold    joblog.Fold
	jobs    int32
}

// Result is how a command ended.
type Result struct {
	Kind   control.ActionKind // Done, AlreadySo, Superseded, Refusal
	State  control.State
	Reason string
}

// Run carries out a command. The error is of ctx, or of something that the command could not decide.
func (c *Commander) Run(ctx context.Context, kind control.CommandKind, p control.Params) (Result, error) {
	defer c.close()
	m := control.NewCommand(kind, p)
	e := control.Event{Kind: control.Begin}
	for {
		act := m.Step(e)
		if act.Attempt > 0 {
			pause(ctx, min(20*time.Millisecond<<min(act.Attempt, 7), 2*time.Second))
		}
		if err := ctx.Err(); err != nil {
			return Result{State: act.State}, err
		}
		switch act.Kind {
		case control.Done, control.AlreadySo, control.Superseded, control.Refusal:
			return Result{act.Kind, act.State, act.Reason}, nil
		}
		var err error
		if e, err = c.do(ctx, act); err != nil {
			v := verdictOf(err)
			e = control.Event{Kind: control.Failed, Verdict: v, Reason: err.Error()}
			c.say("%v", err)
		}
	}
}

func (c *Commander) say(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

func (c *Commander) close() {
	for _, t := range []*kafka.Transactional{c.control, c.job} {
		if t != nil {
			t.Close()
		}
	}
	c.control, c.job = nil, nil
}

// do carries out one action and returns its answer.
func (c *Commander) do(ctx context.Context, act control.Action) (control.Event, error) {
	switch act.Kind {
	case control.FenceControl:
		c.close()
		t, err := kafka.OpenTransactional(ctx, c.Cluster, spec.ControlTransactionalID(c.Pipeline), commandTimeout, nil)
		c.control = t
		return control.Event{Kind: control.ControlFenced}, err
	case control.ReadControl:
		s, found, err := ReadControl(ctx, c.Cluster, c.Pipeline)
		return control.Event{Kind: control.Read, Found: found, State: s}, err
	case control.WriteControl:
		return control.Event{Kind: control.Written}, c.write(act.State)
	case control.FenceJob:
		return c.fence(ctx, act)
	default: // CommitFence
		return control.Event{Kind: control.FenceCommitted}, c.commitFence(act)
	}
}

func (c *Commander) write(s control.State) error {
	b, err := s.Encode()
	if err != nil {
		return err
	}
	c.say("control: generation %d, %s", s.Generation, s.Run)
	c.jobs = s.Jobs
	return c.control.Commit([]*kgo.Record{{Topic: spec.ControlTopic(c.Pipeline), Key: []byte("state"), Value: b}}, nil)
}

func (c *Commander) fence(ctx context.Context, act control.Action) (control.Event, error) {
	if c.job != nil {
		c.job.Close()
		c.job = nil
	}
	t, err := kafka.OpenTransactional(ctx, c.Cluster, spec.JobTransactionalID(c.Pipeline, int(act.Job)), commandTimeout, nil)
	if err != nil {
		return control.Event{}, err
	}
	c.job = t
	if c.fold, err = readJobLog(ctx, c.Cluster, c.Pipeline, act.Job, true); err != nil {
		return control.Event{}, err
	}
	e := control.Event{Kind: control.JobFenced}
	if c.fold.Ready() {
		e.LogGeneration = c.fold.View().Generation
	}
	return e, nil
}

// commitFence takes the lease away for good: whoever held it is fenced, and whoever asks for it again reads the newer generation.
func (c *Commander) commitFence(act control.Action) error {
	r := c.fold.Fence(act.Job, c.jobs, act.Generation, "command", time.Now().UnixMilli())
	err := c.job.Commit([]*kgo.Record{{Topic: spec.JobsTopic(c.Pipeline), Partition: act.Job, Value: joblog.Encode(&r)}}, nil)
	if err == nil {
		c.say("job %d: fenced under generation %d", act.Job, act.Generation)
	}
	return err
}

// readControl is what the lease asks; a pipeline that vanished is an error.
func (w *Worker) readControl(ctx context.Context) (control.State, error) {
	s, found, err := ReadControl(ctx, w.cluster, w.plan.Pipeline)
	if err == nil && !found {
		err = fmt.Errorf("topic %s is empty", spec.ControlTopic(w.plan.Pipeline))
	}
	return s, err
}
