package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// RepositoryRoot is the folder with go.mod, at or above the working directory.
func RepositoryRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", errors.New("no go.mod at or above the working directory")
		}
		folder = above
	}
}

// BuildProcessor builds the binary into a folder, or gives the one that PROCESSOR_BINARY names.
func BuildProcessor(ctx context.Context, root, folder string) (string, error) {
	if named := os.Getenv("PROCESSOR_BINARY"); named != "" {
		return filepath.Abs(named)
	}
	binary := filepath.Join(folder, "processor")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/processor")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the processor: %w: %s", err, out)
	}
	return binary, nil
}

// WorkerOptions says how a worker is started.
type WorkerOptions struct {
	Binary string
	Spec   string // file
	Name   string
	Data   string // folder

	// Brokers overrides the spec's; empty leaves them.
	Brokers string
	// Embedded is the folder of the broker inside the process; empty: none.
	Embedded string
	// More arguments and environment.
	Arguments, Environment []string
	// Copy also gets the log; may be nil.
	Copy io.Writer
}

// Worker is one `processor run`. Its log goes on over restarts.
type Worker struct {
	*Process
	Log *Log
	// HTTP is its address, host:port.
	HTTP string

	options WorkerOptions
}

// StartWorker starts a worker. It returns at once: what the worker does is seen in its log.
func StartWorker(options WorkerOptions) (*Worker, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	w := &Worker{Log: NewLog(options.Copy), HTTP: address, options: options}
	return w, w.Start()
}

// Start starts the worker again after it has ended, with the same name, data and log.
func (w *Worker) Start() error {
	if w.Process != nil && w.Running() {
		return fmt.Errorf("worker %s is running", w.options.Name)
	}
	o := w.options
	arguments := []string{"run", "-f", o.Spec, "--data", o.Data, "--worker", o.Name, "--http", w.HTTP}
	if o.Brokers != "" {
		arguments = append(arguments, "--brokers", o.Brokers)
	}
	if o.Embedded != "" {
		arguments = append(arguments, "--embedded="+o.Embedded)
	}
	w.Log.cut()
	process, err := StartProcess("worker "+o.Name, w.Log, w.Log, o.Environment, o.Binary, append(arguments, o.Arguments...)...)
	if err != nil {
		return err
	}
	w.Process = process
	return nil
}

// Await is Log.Await that does not wait for a worker which has ended.
func (w *Worker) Await(ctx context.Context, mark int, match func(Line) bool) (Line, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := w.Done()
	go func() {
		select {
		case <-done:
			cancel(fmt.Errorf("%s has ended", w.Name))
		case <-ctx.Done():
		}
	}()
	line, err := w.Log.Await(ctx, mark, match)
	if err != nil {
		// Its last words may have come together with its end.
		if late := w.Log.Find(mark, match); len(late) > 0 {
			return late[0], nil
		}
	}
	return line, err
}

// Outcome is what a command printed and how it ended.
type Outcome struct {
	Stdout, Stderr string
	Status         int
}

// Command runs the binary to its end. A status other than 0 is not an error; a command that has not ended with the context is.
func Command(ctx context.Context, binary string, arguments ...string) (Outcome, error) {
	var stdout, stderr bytes.Buffer
	p, err := StartProcess("processor "+arguments[0], &stdout, &stderr, nil, binary, arguments...)
	if err != nil {
		return Outcome{}, err
	}
	status, err := p.Wait(ctx)
	if err != nil {
		// After the kill nobody writes to the buffers any more.
		return Outcome{}, errors.Join(err, p.Kill(), fmt.Errorf("it had said: %.1000s%.1000s", stderr.String(), stdout.String()))
	}
	return Outcome{Stdout: stdout.String(), Stderr: stderr.String(), Status: status}, nil
}
