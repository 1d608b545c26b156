package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoKafka means that neither an outside Kafka nor a script to start one was found.
var ErrNoKafka = errors.New("no Kafka: set KAFKA_BROKERS to the address of one, or KAFKA_SERVER_SCRIPT to a script that starts one")

// ErrOutside means that a server which this process did not start was to be killed, paused or asked for its process.
var ErrOutside = errors.New("this Kafka was not started by the tests")

// KafkaServer is a real Kafka on the loopback. One that was started here ends with this process, however it ends: a guard
// in a session of its own holds the reading end of a pipe, and stops the server when the writing end is closed.
type KafkaServer struct {
	// Brokers is the bootstrap list, host:port with commas.
	Brokers string

	script string // empty: none found, so no tools either
	folder string // empty: an outside server
	guard  *exec.Cmd
	hold   io.Closer
}

// KafkaOptions says how a server is started.
type KafkaOptions struct {
	// Nodes is 1 (default) or 3.
	Nodes int
	// TransactionVersion formats with this version of the transaction protocol (KIP-890); 0 leaves the release's own.
	TransactionVersion int
	// Settings are more lines of server.properties.
	Settings []string
}

// KafkaScript finds the script that starts servers: KAFKA_SERVER_SCRIPT, or the one beside the repository. It returns
// ErrNoKafka when there is none.
func KafkaScript(root string) (string, error) {
	if named := os.Getenv("KAFKA_SERVER_SCRIPT"); named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("KAFKA_SERVER_SCRIPT: %w", err)
		}
		return named, nil
	}
	beside := filepath.Join(root, "..", "shared", "kafka", "kafka-server")
	if _, err := os.Stat(beside); err != nil {
		return "", ErrNoKafka
	}
	return beside, nil
}

// OpenKafka gives the server that KAFKA_BROKERS names, or starts one.
func OpenKafka(ctx context.Context, root string) (*KafkaServer, error) {
	script, err := KafkaScript(root)
	if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
		return &KafkaServer{Brokers: brokers, script: script}, nil
	}
	if err != nil {
		return nil, err
	}
	return StartKafka(ctx, script, KafkaOptions{})
}

// StartKafka starts a server with data of its own in a temporary folder and on free ports, and returns when it is ready.
func StartKafka(ctx context.Context, script string, options KafkaOptions) (*KafkaServer, error) {
	options.Nodes = max(options.Nodes, 1)
	port, err := freePorts(options.Nodes)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "kafka-")
	if err != nil {
		return nil, fmt.Errorf("folder of the Kafka server: %w", err)
	}
	server := &KafkaServer{script: script, folder: folder}
	if err := server.startGuard(); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, script, "start", filepath.Join(folder, "cluster"), strconv.Itoa(port), strconv.Itoa(options.Nodes))
	command.Env, err = options.environment(folder)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Kafka: %w: %s", err, said.String()), server.Close())
	}
	server.Brokers = strings.TrimSpace(string(out))
	return server, nil
}

func (o KafkaOptions) environment(folder string) ([]string, error) {
	env := os.Environ()
	if o.TransactionVersion > 0 {
		env = append(env, fmt.Sprintf("KAFKA_TXN_VERSION=%d", o.TransactionVersion))
	}
	if len(o.Settings) > 0 {
		file := filepath.Join(folder, "extra.properties")
		if err := os.WriteFile(file, []byte(strings.Join(o.Settings, "\n")+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("settings of the Kafka server: %w", err)
		}
		env = append(env, "KAFKA_EXTRA="+file)
	}
	return env, nil
}

// startGuard starts before the server does, so that there is no moment in which the server has nobody to end it.
func (s *KafkaServer) startGuard() error {
	s.guard = exec.Command("bash", "-c", `cat >/dev/null; [ -d "$2/cluster" ] && "$1" stop "$2/cluster"; rm -rf "$2"`, "guard", s.script, s.folder)
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hold, err := s.guard.StdinPipe()
	if err != nil {
		return fmt.Errorf("guard of the Kafka server: %w", err)
	}
	s.hold = hold
	if err := s.guard.Start(); err != nil {
		return fmt.Errorf("guard of the Kafka server: %w", err)
	}
	return nil
}

// Close ends a server that was started here and removes its data. It returns when its processes are gone.
func (s *KafkaServer) Close() error {
	if s.guard == nil {
		return nil
	}
	if err := s.hold.Close(); err != nil {
		return fmt.Errorf("let go of the Kafka server: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.guard.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("stop Kafka: %w", err)
		}
		return nil
	case <-time.After(60 * time.Second):
		return fmt.Errorf("stop Kafka in %s: not done after 60 s", s.folder)
	}
}

// Outside tells whether the server was there before and stays afterwards.
func (s *KafkaServer) Outside() bool { return s.folder == "" }

// Kill ends a node (1, 2, ...) with SIGKILL.
func (s *KafkaServer) Kill(ctx context.Context, node int) error { return s.node(ctx, "kill", node) }

// StartNode starts a killed node again and returns when it is ready.
func (s *KafkaServer) StartNode(ctx context.Context, node int) error {
	return s.node(ctx, "node", node)
}

// Pause stops a node with SIGSTOP.
func (s *KafkaServer) Pause(ctx context.Context, node int) error { return s.node(ctx, "pause", node) }

// Resume wakes a paused node.
func (s *KafkaServer) Resume(ctx context.Context, node int) error { return s.node(ctx, "resume", node) }

func (s *KafkaServer) node(ctx context.Context, verb string, node int) error {
	if s.Outside() {
		return ErrOutside
	}
	out, err := exec.CommandContext(ctx, s.script, verb, filepath.Join(s.folder, "cluster"), strconv.Itoa(node)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s Kafka node %d: %w: %s", verb, node, err, out)
	}
	return nil
}

// NodePID is the process of a node.
func (s *KafkaServer) NodePID(node int) (int, error) {
	if s.Outside() {
		return 0, ErrOutside
	}
	text, err := os.ReadFile(filepath.Join(s.folder, "cluster", fmt.Sprintf("node%d", node), "pid"))
	if err != nil {
		return 0, fmt.Errorf("process of Kafka node %d: %w", node, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Tool runs a main class of Kafka's distribution and returns what it printed on both outputs. It needs the script, also for
// an outside server, and returns ErrNoKafka without it.
func (s *KafkaServer) Tool(ctx context.Context, class string, arguments ...string) (string, error) {
	if s.script == "" {
		return "", ErrNoKafka
	}
	out, err := exec.CommandContext(ctx, s.script, append([]string{"tool", s.folder, class}, arguments...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", class, err, out)
	}
	return string(out), nil
}

// freePorts finds a port such that it, the next ones, and the same ten higher (the nodes' controllers) are free. It looks
// below the range from which the kernel serves outgoing connections.
func freePorts(nodes int) (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if portsFree(port, nodes) && portsFree(port+10, nodes) {
			return port, nil
		}
	}
	return 0, errors.New("no free ports between 20000 and 30000")
}

func portsFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// FreeAddress is a loopback address on which nobody listened a moment ago.
func FreeAddress() (string, error) {
	port, err := freePorts(1)
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
