package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kafka-processor/processor/integration"
)

// app is one of the two that are compared.
type app struct {
	name string
	// start runs it under a name, which is its consumer group, from one topic to another.
	start func(name, in, out string) (*integration.Process, error)
	// via is the topic between its two stages.
	via func(name string) string
}

const (
	streamsApp   = "kafka-streams"
	processorApp = "processor"
)

func findApps(ctx context.Context, root string, b *bench) ([]app, error) {
	var apps []app
	for name := range strings.SplitSeq(b.Apps, ",") {
		find, known := map[string]func(context.Context, string, *bench) (app, error){streamsApp: findStreams, processorApp: findProcessor}[name]
		if !known {
			return nil, fmt.Errorf("-apps: unknown %q", name)
		}
		a, err := find(ctx, root, b)
		if err != nil {
			return nil, err
		}
		apps = append(apps, a)
	}
	return apps, nil
}

func findStreams(_ context.Context, root string, b *bench) (app, error) {
	script := os.Getenv("BASELINE_SCRIPT")
	if script == "" {
		script = filepath.Join(root, "..", "shared", "kafka", "baseline")
	}
	if _, err := os.Stat(script); err != nil {
		return app{}, fmt.Errorf("no Kafka Streams to compare with: BASELINE_SCRIPT: %w", err)
	}
	return app{
		name:  streamsApp,
		start: func(name, in, out string) (*integration.Process, error) { return b.startStreams(script, name, in, out) },
		via:   func(name string) string { return name + "-by-user-repartition" },
	}, nil
}

func findProcessor(ctx context.Context, root string, b *bench) (app, error) {
	binary, err := integration.BuildProcessor(ctx, root, b.folder)
	if err != nil {
		return app{}, err
	}
	return app{
		name: processorApp,
		start: func(name, in, out string) (*integration.Process, error) {
			return b.startProcessor(root, binary, name, in, out)
		},
		via: func(name string) string { return name + ".by_user" },
	}, nil
}

func (b *bench) startStreams(script, name, in, out string) (*integration.Process, error) {
	arguments := []string{name, strconv.Itoa(b.Threads), "-Din=" + in, "-Dout=" + out, "-Dbrokers=" + b.server.Brokers,
		"-Dstate=" + filepath.Join(b.folder, name), fmt.Sprintf("-Drekey=%t", b.Rekey)}
	arguments = append(arguments, strings.Fields(b.StreamsProperties)...)
	return integration.StartProcess(name, os.Stderr, os.Stderr, nil, script, arguments...)
}

func (b *bench) startProcessor(root, binary, name, in, out string) (*integration.Process, error) {
	example := "peer-count"
	if b.Rekey {
		example = "peer-rekey"
	}
	pairs := []string{"pipeline: " + example + "\n", "pipeline: " + name + "\n", "topic: in,", "topic: " + in + ",", "topic: out,", "topic: " + out + ","}
	if b.Jobs > 0 {
		pairs = append(pairs, "jobs: 4\n", fmt.Sprintf("jobs: %d\n", b.Jobs))
	}
	text, err := integration.ExampleSpec(root, example, pairs...)
	if err != nil {
		return nil, err
	}
	spec := filepath.Join(b.folder, name+".yaml")
	if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(b.folder, name+".log"))
	if err != nil {
		return nil, err
	}
	w, err := integration.StartWorker(integration.WorkerOptions{
		Binary: binary, Spec: spec, Name: "only", Data: filepath.Join(b.folder, name), Brokers: b.server.Brokers, Copy: log,
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return w.Process, nil
}
