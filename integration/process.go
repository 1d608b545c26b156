package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// endTime is how long a process may take to be gone after SIGKILL.
const endTime = 10 * time.Second

// Process is a child process. It is ended by its own id, and the kernel kills it when its parent dies.
type Process struct {
	Name string

	command *exec.Cmd
	done    chan struct{} // closed when it has ended and its output is collected
}

// StartProcess starts a command whose outputs go to the two writers. The environment is added to this process's own.
func StartProcess(name string, stdout, stderr io.Writer, environment []string, command string, arguments ...string) (*Process, error) {
	p := &Process{Name: name, command: exec.Command(command, arguments...), done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = stdout, stderr
	p.command.Env = append(os.Environ(), environment...)
	p.command.SysProcAttr = childAttributes()
	p.command.WaitDelay = endTime
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		// How it ended is in ProcessState; a cut output only shows that it left a child behind.
		_ = p.command.Wait()
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running tells whether it has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits until the process has ended and returns its exit status: 128 and more when a signal ended it.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return 0, fmt.Errorf("%s (pid %d) has not ended: %w", p.Name, p.PID(), ctx.Err())
	}
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return p.command.ProcessState.ExitCode(), nil
}

// Kill ends it with SIGKILL, paused or not, and waits until it is gone. One that has ended is no error.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*endTime)
	defer cancel()
	_, err := p.Wait(ctx)
	return err
}

// Terminate sends SIGTERM.
func (p *Process) Terminate() error { return p.signal(syscall.SIGTERM) }

// Dump ends a Go program with SIGQUIT, so that it prints all its goroutines, and with SIGKILL if that does not end it soon.
func (p *Process) Dump() error {
	if err := p.signal(syscall.SIGQUIT); err == nil {
		select {
		case <-p.done:
		case <-time.After(endTime):
		}
	}
	return p.Kill()
}

// Pause stops it with SIGSTOP: it stays as it is and answers nobody.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused one go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil {
		return fmt.Errorf("send %v to %s (pid %d): %w", s, p.Name, p.PID(), err)
	}
	return nil
}
