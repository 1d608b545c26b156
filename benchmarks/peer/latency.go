package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/integration"
)

// latencyRound measures both apps at a steady rate, each with topics of its own.
func (b *bench) latencyRound(ctx context.Context, round int) ([]result, error) {
	var results []result
	for _, a := range b.turns(round) {
		r, err := b.latency(ctx, a, round)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Printf("latency, round %d, %s: p50 %.1f ms, p99 %.1f ms, %d samples\n", round, a.name, r.P50, r.P99, r.Samples)
		results = append(results, r)
	}
	return results, nil
}

func (b *bench) latency(ctx context.Context, a app, round int) (r result, err error) {
	name := b.name("latency", round, a.name)
	in, out := name+"-in", name+"-out"
	for _, topic := range []string{in, out} {
		if err := integration.CreateTopic(ctx, b.server.Brokers, topic, partitions, nil); err != nil {
			return result{}, err
		}
	}
	process, err := a.start(name, in, out)
	if err != nil {
		return result{}, err
	}
	defer process.Kill()
	if err := b.awaitFirst(ctx, process, name, in); err != nil {
		return result{}, err
	}
	seconds := int((b.Warm + b.Measured).Seconds())
	started := time.Now()
	from, to := started.Add(b.Warm), started.Add(b.Warm+b.Measured)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	samples := make(chan []float64, 1)
	failed := make(chan error, 1)
	go func() {
		got, err := readLatencies(reading, b.server.Brokers, out, from, to, seconds*b.Rate)
		samples <- got
		failed <- err
	}()
	events := integration.Events{Records: seconds * b.Rate, Users: b.Users, Seed: uint64(1000 + round)}
	if err := integration.Load(ctx, b.server.Brokers, in, 1, events.Records, b.Rate, events.Record); err != nil {
		return result{}, err
	}
	giveUp := time.AfterFunc(endLimit, stop)
	defer giveUp.Stop()
	r = result{App: a.name, Kind: "latency", Round: round, Records: events.Records}
	r.setLatencies(<-samples)
	if err := <-failed; err != nil {
		return result{}, fmt.Errorf("after %d samples: %w", r.Samples, err)
	}
	r.Exact = true
	r.PeakMemory = peakMemory(process.PID())
	if err := end(process); err != nil {
		return result{}, err
	}
	return r, integration.DeletePipeline(ctx, b.server.Brokers, name, in, out, a.via(name))
}

// awaitFirst sends one record and waits until it is committed, so that the app's start is not measured.
func (b *bench) awaitFirst(ctx context.Context, process *integration.Process, group, in string) error {
	one := integration.Events{Records: 1, Users: b.Users}
	if err := integration.Load(ctx, b.server.Brokers, in, 0, 1, 0, one.Record); err != nil {
		return err
	}
	admin, closeAdmin, err := integration.Admin(b.server.Brokers)
	if err != nil {
		return err
	}
	defer closeAdmin()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	watch := drainWatch{admin: admin, group: group, in: in, records: 1}
	return watch.run(ctx, process)
}

// readLatencies reads a topic from its start until it has seen n more outputs than the first, and returns the milliseconds from
// each input's making to its output's arrival, for the inputs made between two times.
func readLatencies(ctx context.Context, brokers, topic string, from, to time.Time, n int) ([]float64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.FetchMinBytes(1))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var samples []float64
	for seen := 0; seen < n; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return samples, fmt.Errorf("%d of %d outputs read: %w", seen, n, err)
		}
		now := time.Now()
		var bad error
		fetches.EachRecord(func(r *kgo.Record) {
			made, err := madeAt(r.Value)
			bad = errors.Join(bad, err)
			seen++
			if !made.Before(from) && made.Before(to) {
				samples = append(samples, float64(now.Sub(made).Microseconds())/1000)
			}
		})
		if bad != nil {
			return samples, bad
		}
	}
	return samples, nil
}

// madeAt is the member ts of an output, microseconds of Unix time.
func madeAt(value []byte) (time.Time, error) {
	_, after, ok := bytes.Cut(value, []byte(`"ts":`))
	end := bytes.IndexAny(after, ",}")
	if !ok || end < 0 {
		return time.Time{}, fmt.Errorf("output %q has no ts", value)
	}
	micro, err := strconv.ParseInt(string(after[:end]), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("output %q: ts: %w", value, err)
	}
	return time.UnixMicro(micro), nil
}

func (r *result) setLatencies(samples []float64) {
	r.Samples = len(samples)
	if len(samples) == 0 {
		return
	}
	slices.Sort(samples)
	at := func(q float64) float64 { return samples[max(int(math.Ceil(q*float64(len(samples))))-1, 0)] }
	r.P50, r.P90, r.P99, r.Max = at(.5), at(.9), at(.99), at(1)
}
