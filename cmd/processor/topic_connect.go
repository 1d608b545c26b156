package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/embedded"
	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/spec"
)

const (
	defaultBroker = "127.0.0.1:9092"
	defaultFolder = ".processor"
	reachTimeout  = 10 * time.Second
)

// kafkaFlags say which cluster a command talks to: --brokers, else the embedded broker of a folder, else the kafka block of a spec
// file, else Kafka's usual port here.
type kafkaFlags struct {
	brokers  []string
	file     string
	embedded string
}

func (k *kafkaFlags) register(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringSliceVar(&k.brokers, "brokers", nil, "addresses of the cluster, host:port separated by commas (default "+defaultBroker+")")
	f.StringVarP(&k.file, "spec", "f", "", "spec file whose kafka block says how to reach the cluster")
	f.StringVar(&k.embedded, "embedded", "", "use the embedded broker that runs in this folder")
	f.Lookup("embedded").NoOptDefVal = defaultFolder
}

// block is the kafka block to connect with.
func (k *kafkaFlags) block() (spec.Kafka, error) {
	var b spec.Kafka
	if k.file != "" {
		s, faults := spec.Load(k.file)
		if s == nil || spec.Refused(faults) {
			return b, fmt.Errorf("%s has faults: see processor validate -f %s", k.file, k.file)
		}
		b = s.Kafka
	}
	switch {
	case len(k.brokers) > 0:
		b.Brokers = k.brokers
	case k.embedded != "":
		e, err := embedded.Attach(k.embedded)
		if err != nil {
			return b, err
		}
		b = spec.Kafka{Brokers: e.Addresses()}
	case len(b.Brokers) == 0:
		b.Brokers = []string{defaultBroker}
	}
	return b, nil
}

// connect returns a client of a cluster that has answered.
func (k *kafkaFlags) connect(ctx context.Context, more ...kgo.Opt) (*kgo.Client, error) {
	b, err := k.block()
	if err != nil {
		return nil, err
	}
	opts, err := kafka.Options(b, "processor-cli")
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := kafka.Ping(ctx, cl, b.Brokers); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

// describeTopic returns a topic's metadata. One that does not exist is an error that names those with a similar name.
func describeTopic(ctx context.Context, cl *kgo.Client, name string) (kadm.TopicDetail, error) {
	topics, err := kadm.NewClient(cl).ListTopics(ctx)
	if err != nil {
		return kadm.TopicDetail{}, fmt.Errorf("list topics: %w", err)
	}
	t, ok := topics[name]
	if !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
		return kadm.TopicDetail{}, unknownTopic(name, topics.Names())
	}
	if t.Err != nil {
		return kadm.TopicDetail{}, fmt.Errorf("topic %s: %w", name, t.Err)
	}
	return t, nil
}

func unknownTopic(name string, names []string) error {
	near := nearestNames(name, names)
	hint := "the cluster has no topic yet"
	switch {
	case len(near) > 0:
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	case len(names) > 0:
		hint = counted(len(names), "topic") + " with quite other names exist"
	}
	return fmt.Errorf("topic %s does not exist; %s Create it with: processor topic create %s", name, strings.TrimSuffix(hint, ".")+ending(hint), name)
}

// untilSignal is ctx until the first interrupt; the second one ends the process as usual.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func ending(hint string) string {
	if strings.HasSuffix(hint, "?") {
		return ""
	}
	return "."
}

// nearestNames are at most three names that differ from name by little, or contain it, or are contained in it.
func nearestNames(name string, names []string) []string {
	type scored struct {
		name  string
		score int
	}
	var near []scored
	for _, n := range names {
		d := editDistance(strings.ToLower(name), strings.ToLower(n))
		if strings.Contains(n, name) || strings.Contains(name, n) {
			d = min(d, 2)
		}
		if d <= max(2, len(name)/3) {
			near = append(near, scored{n, d})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		if a.score != b.score {
			return a.score - b.score
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, s := range near[:min(3, len(near))] {
		out = append(out, s.name)
	}
	return out
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
