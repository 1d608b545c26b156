package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kafka-processor/processor/integration"
)

const (
	partitions = 8
	lookEvery  = 25 * time.Millisecond
	endLimit   = 30 * time.Second
)

// result is one app's run of one kind.
type result struct {
	App, Kind string
	Round     int
	Records   int
	Exact     bool

	// Of a drain. Seconds count from the start of the process to the first commit, and to the last.
	FirstCommit, Drained   float64
	PerSecond              float64 // from the first commit on
	PerSecondInSecondHalf  float64
	AppCPU, BrokerCPU, Any float64 // seconds; Any is the rest of the machine's, this program's left out

	// Of a latency run, milliseconds.
	P50, P90, P99, Max float64
	Samples            int

	PeakMemory int // MiB, the process's VmHWM
}

// drainRound loads a topic and has both apps drain it, one after the other.
func (b *bench) drainRound(ctx context.Context, round, records int) ([]result, error) {
	in := b.name(round, "in")
	if err := integration.CreateTopic(ctx, b.server.Brokers, in, partitions, nil); err != nil {
		return nil, err
	}
	events := integration.Events{Records: records, Users: b.Users, Seed: uint64(round)}
	if err := integration.Load(ctx, b.server.Brokers, in, 0, records, 0, events.Record); err != nil {
		return nil, err
	}
	rename := integration.Same
	if b.Rekey {
		rename = integration.Reversed
	}
	history := events.History(records, rename)
	var results []result
	for _, a := range b.turns(round) {
		r, err := b.drain(ctx, a, round, in, records)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		name := b.name(round, a.name)
		verdict, err := integration.CheckTopic(ctx, b.server.Brokers, name+"-out", history, integration.DecodeTotal)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		r.Exact = verdict.Exact()
		if !r.Exact {
			fmt.Fprintf(os.Stderr, "%s: outputs are wrong: %v\n", a.name, verdict)
		}
		fmt.Printf("round %d, %s: %.0f records/s, all after %.1f s, exact %t\n", round, a.name, r.PerSecond, r.Drained, r.Exact)
		results = append(results, r)
		if err := integration.DeletePipeline(ctx, b.server.Brokers, name, name+"-out", a.via(name)); err != nil {
			return nil, err
		}
	}
	return results, integration.DeletePipeline(ctx, b.server.Brokers, in, in)
}

// drain runs an app until it has committed the whole input.
func (b *bench) drain(ctx context.Context, a app, round int, in string, records int) (result, error) {
	name := b.name(round, a.name)
	if err := integration.CreateTopic(ctx, b.server.Brokers, name+"-out", partitions, nil); err != nil {
		return result{}, err
	}
	admin, closeAdmin, err := integration.Admin(b.server.Brokers)
	if err != nil {
		return result{}, err
	}
	defer closeAdmin()
	broker, _ := b.server.NodePID(1) // 0, an outside broker, has no known CPU time
	brokerBefore, machineBefore, selfBefore := cpuSeconds(broker), machineSeconds(), cpuSeconds(os.Getpid())
	started := time.Now()
	process, err := a.start(name, in, name+"-out")
	if err != nil {
		return result{}, err
	}
	defer process.Kill()
	watch := drainWatch{admin: admin, group: name, in: in, records: int64(records)}
	if b.Rekey {
		watch.via = a.via(name)
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	if err := watch.run(ctx, process); err != nil {
		return result{}, err
	}
	r := result{App: a.name, Kind: "drain", Round: round, Records: records, PeakMemory: peakMemory(process.PID()), AppCPU: cpuSeconds(process.PID())}
	r.BrokerCPU = cpuSeconds(broker) - brokerBefore
	r.Any = machineSeconds() - machineBefore - r.AppCPU - r.BrokerCPU - (cpuSeconds(os.Getpid()) - selfBefore)
	r.FirstCommit, r.Drained = watch.first.at.Sub(started).Seconds(), watch.last.at.Sub(started).Seconds()
	r.PerSecond, r.PerSecondInSecondHalf = watch.first.rate(watch.last), watch.half.rate(watch.last)
	return r, end(process)
}

// end lets the app finish cleanly, so that the next one does not meet its remains.
func end(p *integration.Process) error {
	if err := p.Terminate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_, err := p.Wait(ctx)
	return err
}

// point is how far an app was at a time.
type point struct {
	at time.Time
	n  int64
}

// rate is 0 where there is too little to tell.
func (p point) rate(later point) float64 {
	seconds := later.at.Sub(p.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(later.n-p.n) / seconds
}

// drainWatch looks at an app's committed offsets.
type drainWatch struct {
	admin          *kadm.Client
	group, in, via string
	records        int64

	first, half, last point
}

// fewMarkers is what may stay uncommitted of the topic between the stages: an app that writes it in transactions need not
// commit past the last markers of each partition.
const fewMarkers = 12 * partitions

func (w *drainWatch) run(ctx context.Context, process *integration.Process) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		lag, err := integration.Lag(ctx, w.admin, w.group, w.in)
		now := point{time.Now(), w.records - lag}
		if err == nil && now.n > 0 && w.first.n == 0 {
			w.first = now
		}
		if err == nil && now.n >= w.records/2 && w.half.n == 0 {
			w.half = now
		}
		if err == nil && now.n >= w.records && w.emptied(ctx) {
			w.last = point{time.Now(), w.records}
			return nil
		}
		select {
		case <-ticker.C:
		case <-process.Done():
			return errors.New("it has ended before its work was done")
		case <-ctx.Done():
			return fmt.Errorf("not drained, %d of %d records committed: %w", now.n, w.records, ctx.Err())
		}
	}
}

func (w *drainWatch) emptied(ctx context.Context) bool {
	if w.via == "" {
		return true
	}
	lag, err := integration.Lag(ctx, w.admin, w.group, w.via)
	return err == nil && lag < fewMarkers
}
