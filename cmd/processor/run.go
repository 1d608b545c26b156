package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/internal/embedded"
	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor"
	"github.com/kafka-processor/processor/spec"
	"github.com/kafka-processor/processor/statestore"
	pebblestore "github.com/kafka-processor/processor/statestore/pebble"
)

// runFlags are the options of `processor run`.
type runFlags struct {
	file     string
	brokers  string
	embedded string
	data     string
	http     string
	worker   string
	leave    bool
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Run a worker of a pipeline until it is told to stop",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWorker(cmd, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "spec file")
	fl.StringVar(&f.brokers, "brokers", "", "comma-separated host:port list; overrides the spec's kafka.brokers")
	fl.StringVar(&f.embedded, "embedded", "", "run (or attach to) an embedded broker that keeps its data in DIR, instead of kafka.brokers")
	fl.Lookup("embedded").NoOptDefVal = ".processor"
	fl.StringVar(&f.data, "data", "", "folder for local state; default .processor/PIPELINE/wN, the first that no live worker uses")
	fl.StringVar(&f.http, "http", "127.0.0.1:0", "loopback address of /healthz, /readyz, /metrics, /api/status; port 0 takes a free one; empty: none")
	fl.StringVar(&f.worker, "worker", "", "name of this worker, its group.instance.id; default: drawn once and kept in the data folder")
	fl.BoolVar(&f.leave, "leave", false, "leave the group when stopping, so that others take over at once (scale-in)")
	requireFlag(cmd, "file")
	return cmd
}

func runWorker(cmd *cobra.Command, f runFlags) error {
	s, faults := loadSpec(f.file)
	for _, fault := range faults {
		fmt.Fprintln(cmd.ErrOrStderr(), fault)
	}
	if spec.Refused(faults) {
		return errShown
	}
	if f.brokers != "" {
		s.Kafka.Brokers = splitBrokers(f.brokers)
	}
	log := slog.Default()
	ctx, interrupted, release := signals(cmd.Context(), log)
	defer release()
	if f.embedded != "" {
		b, err := embedded.Open(ctx, f.embedded, embedded.Options{Partitions: 8, Logger: log})
		if err != nil {
			return err
		}
		defer b.Close()
		s.Kafka = spec.Kafka{Brokers: b.Addresses(), ReplicationFactor: -1}
		log.Info("embedded broker", "address", b.Addresses()[0], "data", f.embedded, "attached", b.Attached())
	}
	home, err := openHome(f.data, s.Pipeline, f.worker)
	if err != nil {
		return err
	}
	defer home.close()
	return serve(ctx, cmd, f, s, home, log, func() bool { return f.leave || interrupted.Load() })
}

func serve(ctx context.Context, cmd *cobra.Command, f runFlags, s *spec.Spec, home *home, log *slog.Logger, leave func() bool) error {
	opts, err := kafka.Options(s.Kafka, "processor-"+home.worker)
	if err != nil {
		return err
	}
	metrics := processor.NewMetrics()
	if f.http != "" {
		address, wait, err := metrics.Serve(ctx, f.http)
		if err != nil {
			return err
		}
		defer wait()
		log.Info("http", "address", address)
	}
	if err := reach(ctx, opts, s.Kafka.Brokers, cmd.ErrOrStderr()); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	// The collector may use memory for speed; the limit keeps a burst from growing without end.
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	log.Info("worker", "pipeline", s.Pipeline, "worker", home.worker, "data", home.dir, "brokers", s.Kafka.Brokers)
	err = processor.Run(ctx, processor.Options{
		Spec: s, Kafka: opts, Addresses: s.Kafka.Brokers, Name: home.worker, Data: home.dir, Leave: leave, CreateSources: f.embedded != "",
		OpenStore: func(dir string) (statestore.Store, error) { return openStore(dir, log) }, Log: log, Metrics: metrics,
		Stalled: func(error) { os.Exit(exitError) },
	})
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// Settings of Go's collector, measured with make bench-peer.
const (
	gcPercent   = 200
	memoryLimit = 270 << 20
)

// openStore opens the local state; a damaged copy is thrown away, since the changelog has it all.
func openStore(dir string, log *slog.Logger) (statestore.Store, error) {
	st, err := pebblestore.Open(dir, pebblestore.Options{Logger: log})
	if err == nil || !errors.Is(err, statestore.ErrCorrupt) {
		return st, err
	}
	log.Warn("the local state is damaged and is rebuilt from the changelog", "folder", dir, "error", err)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return pebblestore.Open(dir, pebblestore.Options{Logger: log})
}

// signals ends the context at the first SIGTERM or SIGINT and the process at the second, which is as safe as a crash. Ctrl-C on a
// terminal also leaves the group.
func signals(parent context.Context, log *slog.Logger) (_ context.Context, interrupted *atomic.Bool, release func()) {
	interrupted = new(atomic.Bool)
	ctx, cancel := context.WithCancel(parent)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGTERM, os.Interrupt)
	done := make(chan struct{})
	go func() {
		select {
		case sig := <-ch:
			interrupted.Store(sig == os.Interrupt && isTerminal(os.Stderr))
			log.Info("signal: finishing the epoch; a second one ends the process now", "signal", sig.String())
			cancel()
		case <-done:
			return
		}
		select {
		case <-ch:
			os.Exit(exitError)
		case <-done:
		}
	}()
	return ctx, interrupted, func() { signal.Stop(ch); close(done); cancel() }
}
