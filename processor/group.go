package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kafka-processor/processor/spec"
)

// group is the worker's membership: owning partition k of the jobs topic is being assigned job k. The client reads no data.
type group struct {
	worker     *Worker
	client     *kgo.Client
	leaveOnEnd bool
}

// join becomes a static member under the worker's name.
func (w *Worker) join() (*group, error) {
	topic := spec.JobsTopic(w.plan.Pipeline)
	session := time.Duration(w.plan.Spec.Lease.SessionTimeout)
	g := &group{worker: w}
	assigned := func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
		for _, k := range m[topic] {
			w.startJob(k)
		}
	}
	revoked := func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
		if ids := m[topic]; len(ids) > 0 {
			w.stopJobs(ids)
		}
	}
	// The callbacks come before NewClient returns on another goroutine: hold them until the topic is paused.
	paused := make(chan struct{})
	wait := func(f func(context.Context, *kgo.Client, map[string][]int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(ctx context.Context, cl *kgo.Client, m map[string][]int32) {
			<-paused
			f(ctx, cl, m)
		}
	}
	cl, err := kgo.NewClient(w.cluster.Options(
		kgo.ConsumerGroup(w.plan.Pipeline), kgo.ConsumeTopics(topic), kgo.InstanceID(w.name), kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(max(session/5, 100*time.Millisecond)), kgo.RebalanceTimeout(max(session, 30*time.Second)),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.OnPartitionsAssigned(wait(assigned)), kgo.OnPartitionsRevoked(wait(revoked)), kgo.OnPartitionsLost(wait(revoked)),
		kgo.WithHooks(&groupHooks{w}),
	)...)
	if err != nil {
		return nil, err
	}
	cl.PauseFetchTopics(topic)
	close(paused)
	g.client = cl
	return g, nil
}

// close ends the client. A static member stays in the group until its session ends, unless it leaves by name.
func (g *group) close() {
	g.client.Close()
	if !g.leaveOnEnd {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	adm := g.worker.cluster.Admin
	_, err := adm.LeaveGroup(ctx, kadm.LeaveGroup(g.worker.plan.Pipeline).InstanceIDs(g.worker.name).Reason("leaving"))
	if err != nil {
		g.worker.log.Warn("could not leave the group; the jobs move when the session ends", "error", err)
	}
}

// groupHooks watch the client's heartbeats and errors.
type groupHooks struct{ w *Worker }

// OnBrokerE2E notes when an answered heartbeat was sent.
func (h *groupHooks) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key == int16(kmsg.Heartbeat) && e2e.Err() == nil {
		h.w.heartbeat.Store(time.Now().Add(-e2e.ReadWait - e2e.TimeToRead).UnixNano())
	}
}

// OnGroupManageError ends the worker if its name was taken by a newer process.
func (h *groupHooks) OnGroupManageError(err error) {
	h.w.log.Warn("group", "error", err)
	if errors.Is(err, kerr.FencedInstanceID) {
		h.w.nameTaken.Store(true)
		h.w.leave(fmt.Errorf("another process runs under the name %q: %w", h.w.name, err))
	}
}

// watchdog leaves when a job's function does not return for longer than lease.stall_timeout: the jobs go to others.
func (w *Worker) watchdog() (stop func()) {
	done := make(chan struct{})
	ended := make(chan struct{})
	limit := time.Duration(w.plan.Spec.Lease.StallTimeout)
	go func() {
		defer close(ended)
		type mark struct {
			progress uint64
			since    time.Time
		}
		marks := map[*job]mark{}
		tick := time.NewTicker(max(limit/10, 10*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			w.mu.Lock()
			for id, j := range w.jobs {
				p, m := j.progress.Load(), marks[j.job]
				if m.progress != p || m.since.IsZero() || !j.busy.Load() {
					marks[j.job] = mark{p, time.Now()}
				} else if time.Since(m.since) > limit {
					go w.leaveHard(fmt.Errorf("job %d has not moved for %v: its process function hangs", id, limit))
				}
			}
			w.mu.Unlock()
		}
	}()
	return func() { close(done); <-ended }
}

// leaveHard gives the membership up at once, without waiting for a job that hangs.
func (w *Worker) leaveHard(why error) {
	w.log.Error("stalled", "error", why)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = w.cluster.Admin.LeaveGroup(ctx, kadm.LeaveGroup(w.plan.Pipeline).InstanceIDs(w.name).Reason("stalled"))
	w.opt.Stalled(why)
}
