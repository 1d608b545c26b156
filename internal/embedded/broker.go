// Package embedded runs a Kafka-compatible broker (kfake) inside this process, its data kept in a folder, so that a pipeline can be
// tried without a Kafka. It is one node, in plain text, on a loopback address.
//
// What survives: a clean Close keeps everything. After a kill of the process everything acknowledged is there too, since every
// batch is handed to the operating system before its answer; only a crash of the machine itself may lose the last seconds, unless
// Options.SyncWrites pays for an fsync per batch (docs/decisions/embedded-broker.md has the figures). Transactions that were open at
// a kill count as aborted, one that was being committed is finished from the journal (repair.go).
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// preferredPort is Kafka's own: with it the commands' default address is the embedded broker's.
const preferredPort = 9092

// Options of a broker. The zero value is good.
type Options struct {
	// Listen is a loopback host:port; port 0 takes a free one. Empty: the port that the folder's last broker had, at first 9092 if
	// it is free.
	Listen string
	// Partitions of a topic that is created without a number; default 1, as Kafka's num.partitions.
	Partitions int
	// SyncWrites fsyncs every batch.
	SyncWrites bool
	// Logger gets the broker's warnings; nil drops them.
	Logger *slog.Logger
}

// Broker is one that runs in this process, or (Attached) in another one.
type Broker struct {
	address  string
	pid      int
	cluster  *kfake.Cluster
	lock     *lockFile
	journal  *journal
	attached bool
}

// Addresses is the bootstrap list.
func (b *Broker) Addresses() []string { return []string{b.address} }

// Attached tells that the broker belongs to another process and ends with that.
func (b *Broker) Attached() bool { return b.attached }

// PID is the process that runs the broker.
func (b *Broker) PID() int { return b.pid }

// Open starts the broker of dir, or attaches to the live process that already runs it.
func Open(ctx context.Context, dir string, opt Options) (*Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		b, err := Start(dir, opt)
		if !errors.Is(err, ErrRunning) {
			return b, err
		}
		if b, err := attach(dir); err == nil {
			return b, nil
		}
		// The owner is loading its data, or has just ended.
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%s: the process that holds the lock does not answer: %w", dir, ctx.Err())
		case <-t.C:
		}
	}
}

// Attach returns the broker that another process runs in dir. It is an error if there is none.
func Attach(dir string) (*Broker, error) {
	l, _, err := acquire(dir)
	if err == nil {
		return nil, errors.Join(fmt.Errorf("no embedded broker runs in %s: start one with processor broker --data %s or processor run --embedded=%s", dir, dir, dir), l.release(false))
	}
	if !errors.Is(err, ErrRunning) {
		return nil, err
	}
	return attach(dir)
}

func attach(dir string) (*Broker, error) {
	o, err := readOwner(dir)
	if err != nil {
		return nil, err
	}
	if o.Address == "" {
		return nil, fmt.Errorf("the broker of %s (process %d) is still starting", dir, o.PID)
	}
	c, err := net.DialTimeout("tcp", o.Address, time.Second)
	if err != nil {
		return nil, fmt.Errorf("the broker of %s (process %d) does not answer: %w", dir, o.PID, err)
	}
	c.Close()
	return &Broker{address: o.Address, pid: o.PID, attached: true}, nil
}

// Start runs the broker of dir in this process. It is ErrRunning if another live process does.
func Start(dir string, opt Options) (_ *Broker, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("broker folder: %w", err)
	}
	lock, unclean, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.release(!unclean))
		}
	}()
	// An owner without an address: whoever wants to attach waits. It also keeps the mark of an unclean end until the repair is done.
	if err := lock.publish(owner{PID: os.Getpid()}); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if unclean {
		if err := repair(dir, data); err != nil {
			return nil, fmt.Errorf("repair %s after an unclean end: %w", data, err)
		}
	}
	return run(dir, data, opt, lock)
}

func run(dir, data string, opt Options, lock *lockFile) (*Broker, error) {
	hosts, err := candidates(dir, opt.Listen)
	if err != nil {
		return nil, err
	}
	cluster, err := listen(hosts, data, opt)
	if err != nil {
		return nil, err
	}
	b := &Broker{cluster: cluster, lock: lock, address: cluster.ListenAddrs()[0], pid: os.Getpid()}
	err = func() error {
		if b.journal, err = openJournal(dir, cluster); err != nil {
			return err
		}
		_, port, err := net.SplitHostPort(b.address)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "port"), []byte(port+"\n"), 0o644); err != nil {
			return fmt.Errorf("keep the broker's port: %w", err)
		}
		return lock.publish(owner{Address: b.address, PID: os.Getpid()})
	}()
	if err != nil {
		cluster.Close()
		return nil, err
	}
	return b, nil
}

// candidates are the addresses to try, in order.
func candidates(dir, listen string) ([]string, error) {
	if listen != "" {
		host, _, err := net.SplitHostPort(listen)
		if err != nil {
			return nil, fmt.Errorf("listen address %q: %w", listen, err)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("listen address %q: the embedded broker has no authentication and listens on loopback addresses only", listen)
		}
		return []string{listen}, nil
	}
	port := preferredPort
	if b, err := os.ReadFile(filepath.Join(dir, "port")); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 && n < 1<<16 {
			port = n
		}
	}
	return []string{"127.0.0.1:" + strconv.Itoa(port), "127.0.0.1:0"}, nil
}

// listen starts the cluster on the first address that is free.
func listen(hosts []string, data string, opt Options) (*kfake.Cluster, error) {
	var ln net.Listener
	var errs error
	for _, h := range hosts {
		l, err := net.Listen("tcp", h)
		if err == nil {
			ln = l
			break
		}
		errs = errors.Join(errs, err)
	}
	if ln == nil {
		return nil, fmt.Errorf("embedded broker: %w", errs)
	}
	partitions := opt.Partitions
	if partitions == 0 {
		partitions = 1
	}
	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.DataDir(data), kfake.DefaultNumPartitions(partitions), kfake.ClusterID("embedded"),
		kfake.GroupMinSessionTimeout(6 * time.Second), kfake.GroupMaxSessionTimeout(30 * time.Minute),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return ln, nil }),
		kfake.WithLogger(quiet{opt.Logger}),
		// kfake's own defaults differ from Kafka's only where listed.
		kfake.BrokerConfigs(map[string]string{"default.replication.factor": "1", "min.insync.replicas": "1"}),
	}
	if opt.SyncWrites {
		opts = append(opts, kfake.SyncWrites())
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("embedded broker in %s: %w", data, err)
	}
	return c, nil
}

// Close ends the broker, all data on disk. An attached one only lets go of it.
func (b *Broker) Close() error {
	if b.attached {
		return nil
	}
	b.cluster.Close()
	return errors.Join(b.journal.Close(), b.lock.release(true))
}

// quiet passes warnings and errors on.
type quiet struct{ log *slog.Logger }

func (q quiet) Logf(level kfake.LogLevel, format string, args ...any) {
	if q.log == nil || level == kfake.LogLevelNone || level > kfake.LogLevelWarn {
		return
	}
	q.log.Warn(fmt.Sprintf(format, args...), "from", "embedded broker")
}
