// Command demo runs examples/flights.yaml over the flights in examples/data on an embedded broker, shows what came out, and ends.
// It uses the program as a person would: the binary and its commands.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/kafka-processor/processor/internal/embedded"
)

const (
	pipeline = "flights"
	results  = "flight-stats"
	rows     = 15
)

func main() {
	d := demo{}
	flag.StringVar(&d.binary, "processor", "bin/processor", "the program")
	flag.StringVar(&d.spec, "spec", "examples/flights.yaml", "the pipeline")
	flag.StringVar(&d.data, "data", "examples/data/flights.jsonl.gz", "rows of the source topic")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type demo struct {
	binary, spec, data string
	folder             string
	address            string
}

func (d *demo) run(ctx context.Context) (err error) {
	if d.folder, err = os.MkdirTemp("", "processor-demo-"); err != nil {
		return err
	}
	worker, err := d.startWorker()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, worker.stop())
		if err != nil {
			fmt.Fprintf(os.Stderr, "the worker's log is %s\n", worker.log.Name())
			return
		}
		err = os.RemoveAll(d.folder)
	}()
	if d.address, err = d.waitForBroker(ctx, worker); err != nil {
		return err
	}
	fmt.Printf("embedded broker at %s, one worker with two jobs\n", d.address)
	if err := d.show(ctx, "topic", "create", pipeline, "--partitions", "8", "--if-not-exists"); err != nil {
		return err
	}
	begin := time.Now()
	if err := d.show(ctx, "topic", "produce", pipeline, "--file", d.data, "--value-format", "json"); err != nil {
		return err
	}
	if err := d.waitUntilDrained(ctx, worker); err != nil {
		return err
	}
	fmt.Printf("drained %.1f s after the first record was sent\n\n", time.Since(begin).Seconds())
	return d.showResults(ctx)
}

// worker is the process that runs broker and pipeline.
type worker struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
	err   error // how it ended; set before ended is closed
}

func (d *demo) startWorker() (*worker, error) {
	log, err := os.Create(filepath.Join(d.folder, "worker.log"))
	if err != nil {
		return nil, err
	}
	w := &worker{log: log, ended: make(chan struct{})}
	w.cmd = exec.Command(d.binary, "run", "-f", d.spec, "--embedded="+filepath.Join(d.folder, "broker"), "--data", filepath.Join(d.folder, "worker"))
	w.cmd.Stdout, w.cmd.Stderr = log, log
	// A Ctrl-C reaches only this program, which then stops the worker.
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() {
		w.err = w.cmd.Wait()
		close(w.ended)
	}()
	return w, nil
}

// stop asks the worker to end, and kills it if it has not within 30 s.
func (w *worker) stop() error {
	defer w.log.Close()
	select {
	case <-w.ended:
		return fmt.Errorf("the worker ended by itself: %v", w.err)
	default:
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-w.ended:
		return w.err
	case <-time.After(30 * time.Second):
		return errors.Join(errors.New("the worker did not stop within 30 s and was killed"), w.cmd.Process.Kill())
	}
}

// each calls try every interval until it is done, at most for two minutes.
func (w *worker) each(ctx context.Context, interval time.Duration, what string, try func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-w.ended:
			return fmt.Errorf("%s: the worker has ended", what)
		case <-t.C:
		}
	}
}

func (d *demo) waitForBroker(ctx context.Context, w *worker) (address string, err error) {
	err = w.each(ctx, 50*time.Millisecond, "wait for the broker", func() (bool, error) {
		b, err := embedded.Attach(filepath.Join(d.folder, "broker"))
		if err != nil {
			return false, nil // not yet
		}
		address = b.Addresses()[0]
		return true, nil
	})
	return address, err
}

func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, d.binary, append(args, "--brokers", d.address)...)
	c.Stderr = os.Stderr
	return c
}

// show runs a command before the reader's eyes.
func (d *demo) show(ctx context.Context, args ...string) error {
	fmt.Printf("$ processor %s\n", strings.Join(args, " "))
	c := d.command(ctx, args...)
	c.Stdout = os.Stdout
	return c.Run()
}

// waitUntilDrained polls the status until every input is read to its end.
func (d *demo) waitUntilDrained(ctx context.Context, w *worker) error {
	return w.each(ctx, 200*time.Millisecond, "wait until all is processed", func() (bool, error) {
		var status struct {
			Lag    int64 `json:"lag"`
			Inputs []struct {
				NotStarted int `json:"not_started"`
			} `json:"inputs"`
		}
		out, err := d.command(ctx, "status", pipeline, "--json").Output()
		if err != nil {
			return false, fmt.Errorf("processor status: %w", err)
		}
		if err := json.Unmarshal(out, &status); err != nil {
			return false, fmt.Errorf("processor status: %w", err)
		}
		waiting := 0
		for _, in := range status.Inputs {
			waiting += in.NotStarted
		}
		return len(status.Inputs) > 0 && waiting == 0 && status.Lag == 0, nil
	})
}

// route is a row of the results.
type route struct {
	Route     string  `json:"route"`
	Scheduled int64   `json:"scheduled"`
	Departed  int64   `json:"departed"`
	AvgDelay  float64 `json:"avg_delay"`
	MaxDelay  int64   `json:"max_delay"`
	Miles     int64   `json:"miles"`
}

// showResults folds the result topic, whose last record for each key is the present state, and prints the busiest routes.
func (d *demo) showResults(ctx context.Context) error {
	c := d.command(ctx, "topic", "consume", results, "--exit-at-end")
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	last, updates, err := fold(out)
	if err := errors.Join(err, c.Wait()); err != nil {
		return fmt.Errorf("read %s: %w", results, err)
	}
	want, err := d.countRows()
	if err != nil {
		return err
	}
	routes := make([]route, 0, len(last))
	total := int64(0)
	for _, r := range last {
		routes = append(routes, r)
		total += r.Scheduled
	}
	slices.SortFunc(routes, func(a, b route) int { return int(b.Scheduled - a.Scheduled) })
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "route\tscheduled\tcancelled\taverage delay\tworst delay\tmiles\t")
	for _, r := range routes[:min(rows, len(routes))] {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f min\t%d min\t%d\t\n", r.Route, r.Scheduled, r.Scheduled-r.Departed, r.AvgDelay, r.MaxDelay, r.Miles)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nthe busiest %d of %d routes; %d flights in, %d counted, %d updates, each exactly once\n", min(rows, len(routes)), len(routes), want, total, updates)
	if total != want || updates != want {
		return fmt.Errorf("counted %d flights in %d updates, but %d went in", total, updates, want)
	}
	return nil
}

func fold(out io.Reader) (last map[string]route, updates int64, err error) {
	last = map[string]route{}
	s := bufio.NewScanner(out)
	for s.Scan() {
		var r route
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return nil, 0, err
		}
		last[r.Route] = r
		updates++
	}
	return last, updates, s.Err()
}

// countRows is how many rows the data has.
func (d *demo) countRows() (int64, error) {
	z, err := openGzip(d.data)
	if err != nil {
		return 0, err
	}
	defer z.Close()
	n, buffer := int64(0), make([]byte, 1<<16)
	for {
		k, err := z.Read(buffer)
		n += int64(bytes.Count(buffer[:k], []byte("\n")))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
