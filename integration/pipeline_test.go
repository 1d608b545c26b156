package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var names atomic.Int64

// uniqueName is a name that no other test and no earlier run on the same Kafka has.
func uniqueName(prefix string) string {
	return fmt.Sprintf("%s-%s-%d", prefix, strconv.FormatInt(time.Now().UnixMilli(), 36), names.Add(1))
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// sourcePartitions is how many partitions the tests' source topics have.
const sourcePartitions = 8

// fastLease notices the dead soon, so that tests need not wait for it.
const fastLease = "lease: {session_timeout: 6s, transaction_timeout: 10s}\n"

// pipeline is one example spec under a name of its own, with its topics and workers.
type pipeline struct {
	t      *testing.T
	server *KafkaServer
	binary string

	name, spec      string // the spec is a file
	source, out     string // topics
	internal, state string // the internal stream ("" if none), and the changelog
	inputs          []string
	folder          string
}

// newPipeline makes a pipeline from an example; more replacements are given in pairs. The source topic exists when it returns,
// and everything of the pipeline is deleted after the test.
func newPipeline(t *testing.T, server *KafkaServer, example string, pairs ...string) *pipeline {
	t.Helper()
	p := &pipeline{t: t, server: server, binary: theBinary(t), name: uniqueName(example), folder: t.TempDir()}
	p.source, p.out = p.name+"-in", p.name+"-out"
	var source, out, stage string
	switch example {
	case "ledger":
		source, out, stage, p.internal = "topic: entries,", "topic: balances,", "balance", p.name+".postings"
	case "peer-count":
		source, out, stage = "topic: in,", "topic: out,", "count"
	case "peer-rekey":
		source, out, stage, p.internal = "topic: in,", "topic: out,", "count", p.name+".by_user"
	case "word-count":
		source, out, stage, p.internal = "topic: lines,", "topic: counts,", "count", p.name+".words"
	default:
		t.Fatalf("no example %s", example)
	}
	p.state = p.name + "." + stage + ".state"
	p.inputs = []string{p.source}
	if p.internal != "" {
		p.inputs = append(p.inputs, p.internal)
	}
	text, err := ExampleSpec(shared.root, example, append([]string{
		"pipeline: " + example + "\n", "pipeline: " + p.name + "\n" + fastLease,
		source, "topic: " + p.source + ",", out, "topic: " + p.out + ",",
	}, pairs...)...)
	must(t, err)
	p.spec = writeFile(t, "spec.yaml", text)
	must(t, CreateTopic(within(t, time.Minute), server.Brokers, p.source, sourcePartitions, map[string]string{"max.message.bytes": "8388608"}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := DeletePipeline(ctx, server.Brokers, p.name, p.source, p.out); err != nil {
			t.Logf("left behind: %v", err)
		}
	})
	return p
}

// worker starts a worker, which ends with the test.
func (p *pipeline) worker(name string, more ...string) *Worker {
	p.t.Helper()
	options := WorkerOptions{
		Binary: p.binary, Spec: p.spec, Name: name, Data: filepath.Join(p.folder, name), Brokers: p.server.Brokers, Arguments: more,
	}
	w, err := StartWorker(options)
	must(p.t, err)
	p.t.Cleanup(func() { p.end(w) })
	return w
}

func (p *pipeline) end(w *Worker) { endWorker(p.t, w, p.name) }

// endWorker kills a worker. When the test has failed it shows the log's end, and keeps all of it and the goroutines' stacks in
// the folder that INTEGRATION_LOGS names.
func endWorker(t *testing.T, w *Worker, pipeline string) {
	if !t.Failed() {
		if err := w.Kill(); err != nil {
			t.Error(err)
		}
		return
	}
	t.Logf("the last lines of %s:\n%s", w.Name, w.Log.Tail(15))
	if err := w.Dump(); err != nil {
		t.Error(err)
	}
	if folder := os.Getenv("INTEGRATION_LOGS"); folder != "" {
		file := filepath.Join(folder, pipeline+"-"+w.options.Name+".log")
		if err := os.WriteFile(file, []byte(w.Log.Tail(maxLogLines)), 0o600); err != nil {
			t.Logf("log not kept: %v", err)
		}
	}
}

// command runs a command of the binary on this Kafka, which must succeed.
func (p *pipeline) command(arguments ...string) string {
	p.t.Helper()
	out, err := Command(within(p.t, 90*time.Second), p.binary, append(arguments, "--brokers", p.server.Brokers)...)
	must(p.t, err)
	if out.Status != 0 {
		p.t.Fatalf("processor %v: exit status %d: %s%s", arguments, out.Status, out.Stdout, out.Stderr)
	}
	return out.Stdout
}

// status is `processor status --json`.
func (p *pipeline) status() any {
	p.t.Helper()
	var status any
	text := p.command("status", p.name, "--json")
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		p.t.Fatalf("status is no JSON: %v: %s", err, text)
	}
	return status
}

// drained waits until every input of every stage is committed to its end.
func (p *pipeline) drained(d time.Duration) {
	p.t.Helper()
	must(p.t, AwaitDrained(within(p.t, d), p.server.Brokers, p.name, p.inputs...))
}

func (p *pipeline) load(from, to, rate int, record func(int) *kgo.Record) {
	p.t.Helper()
	must(p.t, Load(within(p.t, 10*time.Minute), p.server.Brokers, p.source, from, to, rate, record))
}

// exact checks the output topic against the history.
func (p *pipeline) exact(history History, decode Decoder) {
	p.t.Helper()
	verdict, err := CheckTopic(within(p.t, 5*time.Minute), p.server.Brokers, p.out, history, decode)
	must(p.t, err)
	if !verdict.Exact() {
		p.t.Errorf("outputs of %s are wrong: %v", p.name, verdict)
	}
	p.t.Logf("%v", verdict)
}

// stateHolds checks that the changelog's fold is the history's last step of every key, and nothing else.
func (p *pipeline) stateHolds(history History) {
	p.t.Helper()
	rows, err := ChangelogRows(within(p.t, 5*time.Minute), p.binary, p.server.Brokers, p.state, "aggregate")
	must(p.t, err)
	for key, steps := range history {
		row, ok := rows[key]
		if !ok {
			p.t.Errorf("changelog %s has no value for %q", p.state, key)
			break
		}
		step, err := row.Step()
		must(p.t, err)
		if want := steps[len(steps)-1]; step != want {
			p.t.Errorf("changelog %s has %+v for %q, the fold is %+v", p.state, step, key, want)
			break
		}
	}
	if len(rows) != len(history) {
		p.t.Errorf("changelog %s has %d keys, want %d", p.state, len(rows), len(history))
	}
}

// noLag asks Kafka's own tool.
func (p *pipeline) noLag() {
	p.t.Helper()
	rows, err := DescribeGroup(within(p.t, time.Minute), p.server, p.name)
	needKafka(p.t, err)
	for _, topic := range p.inputs {
		if lag, err := TopicLag(rows, topic, sourcePartitions); err != nil || lag != 0 {
			p.t.Errorf("Kafka's group tool: topic %s: lag %d, %v; all rows: %+v", topic, lag, err, rows)
		}
	}
}

// awaitJobs waits until the worker has acquired n different jobs since the mark.
func (p *pipeline) awaitJobs(w *Worker, mark, n int, d time.Duration) {
	p.t.Helper()
	jobs := map[string]bool{}
	_, err := w.Await(within(p.t, d), mark, func(l Line) bool {
		if l.Message == "job acquired" {
			jobs[l.Field("job")] = true
		}
		return len(jobs) >= n
	})
	if err != nil {
		p.t.Fatalf("%s has acquired jobs %v, wanted %d of them: %v", w.Name, jobs, n, err)
	}
}
