// Command peer compares the processor with Kafka Streams doing the same work on the same Kafka in one run: re-key,
// repartition, count and sum, or count and sum alone, one output for each input, exactly once.
//
//	go run ./benchmarks/peer [-records N] [-rounds R] [-rekey=false] [-raw FILE]
//
// Every round loads a fresh topic, which both drain, in turns first; then comes the latency at a steady rate. All outputs are
// checked, key by key. It prints medians and their ratios, and keeps every figure as JSON. What else runs on the machine counts:
// the table says how much CPU neither of the two nor the broker nor this program used.
//
// Kafka: KAFKA_BROKERS, or the script that KAFKA_SERVER_SCRIPT names. Kafka Streams: the script that BASELINE_SCRIPT names,
// called with an application id, a number of threads and -D properties (in, out, brokers, state, rekey).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kafka-processor/processor/integration"
)

// settings are the command line.
type settings struct {
	Records, Users, Rounds, LatencyRounds int
	Rekey                                 bool
	Threads, Jobs                         int
	Rate                                  int
	Warm, Measured, Limit                 time.Duration
	Apps, Raw                             string
	StreamsProperties                     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	flag.IntVar(&s.Records, "records", 2_000_000, "records of a round")
	flag.IntVar(&s.Users, "users", 100_000, "distinct keys")
	flag.IntVar(&s.Rounds, "rounds", 3, "rounds of draining")
	flag.IntVar(&s.LatencyRounds, "latency-rounds", 1, "rounds of latency; 0 leaves it out")
	flag.BoolVar(&s.Rekey, "rekey", true, "re-key and repartition before counting")
	flag.IntVar(&s.Threads, "threads", 2, "threads of Kafka Streams")
	flag.IntVar(&s.Jobs, "jobs", 0, "jobs of the processor; 0 leaves the example spec's")
	flag.IntVar(&s.Rate, "rate", 2000, "records a second while the latency is measured")
	flag.DurationVar(&s.Warm, "warm", 10*time.Second, "steady load before the latency is measured")
	flag.DurationVar(&s.Measured, "for", 20*time.Second, "steady load whose latency is measured")
	flag.DurationVar(&s.Limit, "limit", 5*time.Minute, "give up a drain after this")
	flag.StringVar(&s.Apps, "apps", streamsApp+","+processorApp, "what to run")
	flag.StringVar(&s.Raw, "raw", "", "file of all figures as JSON; default bin/peer-TIME.json")
	flag.StringVar(&s.StreamsProperties, "streams", "", "more -D properties of Kafka Streams, with spaces between")
	flag.Parse()
	return s
}

// bench is one run.
type bench struct {
	settings
	server *integration.KafkaServer
	folder string
	id     string // of this run, part of all names
	apps   []app
}

// report is what the raw file holds.
type report struct {
	At       time.Time
	CPUs     int
	Go       string
	Settings settings
	Results  []result
}

func run(ctx context.Context, s settings) (err error) {
	root, err := integration.RepositoryRoot()
	if err != nil {
		return err
	}
	b := &bench{settings: s, id: fmt.Sprintf("%x", time.Now().Unix())}
	if b.folder, err = os.MkdirTemp("", "peer-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if b.apps, err = findApps(ctx, root, b); err != nil {
		return err
	}
	if b.server, err = integration.OpenKafka(ctx, root); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.Close()) }()
	// Not counted: it builds what has to be built, and warms the broker's virtual machine.
	if _, err := b.drainRound(ctx, 0, min(s.Records/10, 100_000)); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	out := report{At: time.Now(), CPUs: runtime.NumCPU(), Go: runtime.Version(), Settings: s}
	for i := 1; i <= s.Rounds; i++ {
		results, err := b.drainRound(ctx, i, s.Records)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		out.Results = append(out.Results, results...)
	}
	for i := 1; i <= s.LatencyRounds; i++ {
		results, err := b.latencyRound(ctx, i)
		if err != nil {
			return fmt.Errorf("latency, round %d: %w", i, err)
		}
		out.Results = append(out.Results, results...)
	}
	printTable(os.Stdout, out)
	return keep(root, s.Raw, out)
}

func keep(root, file string, out report) error {
	if file == "" {
		file = filepath.Join(root, "bin", "peer-"+out.At.UTC().Format("20060102-150405")+".json")
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	fmt.Println("all figures:", file)
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// turns gives the apps in the order of a round: each is first every other time.
func (b *bench) turns(round int) []app {
	apps := slices.Clone(b.apps)
	if round%2 == 1 {
		slices.Reverse(apps)
	}
	return apps
}

// name is a topic, group or pipeline of this run.
func (b *bench) name(parts ...any) string {
	text := "peer-" + b.id
	for _, part := range parts {
		text += "-" + strings.ToLower(fmt.Sprint(part))
	}
	return text
}
