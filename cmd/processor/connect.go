package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/spec"
)

// clusterFlags say which Kafka a command talks to: --brokers, or the kafka: block of a spec file, else 127.0.0.1:9092.
type clusterFlags struct {
	brokers string
	file    string
}

func (c *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.brokers, "brokers", "", "comma-separated host:port list; overrides the spec's kafka.brokers")
	cmd.Flags().StringVarP(&c.file, "file", "f", "", "spec file whose kafka: block says how to connect")
}

func (c *clusterFlags) kafka() (spec.Kafka, error) {
	k := spec.Kafka{Brokers: []string{"127.0.0.1:9092"}, ReplicationFactor: -1}
	if c.file != "" {
		s, faults := spec.Load(c.file)
		if s == nil || spec.Refused(faults) {
			return k, fmt.Errorf("%s: not a valid spec; see processor validate -f %s", c.file, c.file)
		}
		k = s.Kafka
	}
	if c.brokers != "" {
		k.Brokers = splitBrokers(c.brokers)
	}
	return k, nil
}

func splitBrokers(list string) []string {
	var out []string
	for _, b := range strings.Split(list, ",") {
		if b = strings.TrimSpace(b); b != "" {
			out = append(out, b)
		}
	}
	return out
}

// connectTimeout bounds how long a short command tries to reach the cluster.
const connectTimeout = 10 * time.Second

// open connects for a short command; an unreachable cluster is an error after connectTimeout.
func (c *clusterFlags) open(ctx context.Context) (*kafka.Cluster, error) {
	k, err := c.kafka()
	if err != nil {
		return nil, err
	}
	opts, err := kafka.Options(k, "processor-cli")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := reach(ctx, opts, k.Brokers, io.Discard); err != nil {
		return nil, err
	}
	return kafka.Open(ctx, opts)
}

// reach waits until a broker answers, telling w of failures.
func reach(ctx context.Context, opts []kgo.Opt, addresses []string, w io.Writer) error {
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return kafka.Reach(ctx, cl, addresses, func(err error) { fmt.Fprintf(w, "processor: %v; trying again\n", err) })
}
