package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/kafka"
)

func splitBrokers(list string) []string {
	var out []string
	for _, b := range strings.Split(list, ",") {
		if b = strings.TrimSpace(b); b != "" {
			out = append(out, b)
		}
	}
	return out
}

// open connects for a short command that needs more than a client; an unreachable cluster is an error after reachTimeout.
func (k *kafkaFlags) open(ctx context.Context) (*kafka.Cluster, error) {
	cl, err := k.connect(ctx)
	if err != nil {
		return nil, err
	}
	cl.Close()
	b, err := k.block()
	if err != nil {
		return nil, err
	}
	opts, err := kafka.Options(b, "processor-cli")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
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
