package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxLineBytes bounds one line of input; the broker's own limit is usually far lower.
const maxLineBytes = 64 << 20

type produceOptions struct {
	input     string
	separator string
	fields    []string
	format    string
	rate      float64
	partition int32
}

func newTopicProduce(k *kafkaFlags) *cobra.Command {
	o := produceOptions{}
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write the lines of a file or of standard input as records",
		Long: "Write the lines of a file or of standard input as records. The partition follows from the key by Kafka's murmur2, " +
			"as with Kafka's own producers. A key of one string member is its bytes, any other key a JSON array of the members.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			in, err := o.open(cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer in.Close()
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			var opts []kgo.Opt
			if o.partition >= 0 {
				opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			}
			cl, err := k.connect(ctx, opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			t, err := describeTopic(ctx, cl, args[0])
			if err != nil {
				return err
			}
			if int(o.partition) >= len(t.Partitions) {
				return fmt.Errorf("--partition %d: topic %s has partitions 0 to %d", o.partition, args[0], len(t.Partitions)-1)
			}
			p := &producer{client: cl, topic: args[0], options: o}
			return p.run(ctx, in, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.input, "file", "", "read this file (.gz too) instead of standard input")
	f.StringVar(&o.separator, "key-separator", "", "a line is KEY, this separator, VALUE")
	f.StringSliceVar(&o.fields, "key-field", nil, "the key is this member of the JSON value; several: a JSON array of them")
	f.StringVar(&o.format, "value-format", "text", "text (a line as it is), json (each line is checked) or raw (the whole input is one record)")
	f.Float64Var(&o.rate, "rate", 0, "records per second; 0: as fast as it can")
	f.Int32Var(&o.partition, "partition", -1, "write to this partition; -1: by key")
	return cmd
}

func (o *produceOptions) check() error {
	switch {
	case o.format != "text" && o.format != "json" && o.format != "raw":
		return fmt.Errorf("--value-format %q is unknown: use text, json or raw", o.format)
	case o.separator != "" && len(o.fields) > 0:
		return errors.New("--key-separator and --key-field exclude each other")
	case o.format == "raw" && len(o.fields) > 0:
		return errors.New("--key-field needs JSON lines, not --value-format raw")
	case o.rate < 0:
		return errors.New("--rate is negative")
	}
	return nil
}

type readCloser struct {
	io.Reader
	close func() error
}

func (r readCloser) Close() error { return r.close() }

func (o *produceOptions) open(stdin io.Reader) (io.ReadCloser, error) {
	if o.input == "" || o.input == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(o.input)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(o.input, ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", o.input, err), f.Close())
	}
	return readCloser{z, func() error { return errors.Join(z.Close(), f.Close()) }}, nil
}

// producer writes one input to one topic.
type producer struct {
	client  *kgo.Client
	topic   string
	options produceOptions

	acknowledged atomic.Int64
	failed       chan struct{} // closed at the first error
	once         sync.Once
	err          error // set before failed is closed
}

func (p *producer) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	begin := time.Now()
	p.failed = make(chan struct{})
	stopProgress := p.showProgress(errOut, begin)
	err := p.readAll(ctx, in, begin)
	flushed := p.client.Flush(ctx)
	stopProgress()
	select {
	case <-p.failed:
		err = p.err
	default:
		if err == nil {
			err = flushed
		}
	}
	n, took := p.acknowledged.Load(), time.Since(begin)
	fmt.Fprintf(out, "produced %s to %s in %.1f s (%.0f/s)\n", counted(int(n), "record"), p.topic, took.Seconds(), float64(n)/took.Seconds())
	return err
}

// readAll hands all lines to the client; the client's buffer is what holds it back.
func (p *producer) readAll(ctx context.Context, in io.Reader, begin time.Time) error {
	if p.options.format == "raw" {
		b, err := io.ReadAll(io.LimitReader(in, maxLineBytes))
		if err != nil {
			return fmt.Errorf("read input: %w", err)
		}
		r, err := p.record(b)
		if err != nil {
			return err
		}
		p.send(ctx, r)
		return nil
	}
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), maxLineBytes)
	for line, sent := 1, 0; s.Scan(); line++ {
		if p.options.format == "json" && len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		r, err := p.record(bytes.Clone(s.Bytes()))
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if err := p.pace(ctx, begin, sent); err != nil {
			return err
		}
		p.send(ctx, r)
		sent++
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	return nil
}

// pace waits until record number n is due, and ends early on a failure.
func (p *producer) pace(ctx context.Context, begin time.Time, n int) error {
	wait := time.Duration(0)
	if p.options.rate > 0 {
		wait = time.Until(begin.Add(time.Duration(float64(n) / p.options.rate * float64(time.Second))))
	}
	if wait <= 0 {
		select {
		case <-p.failed:
			return p.err
		default:
			return ctx.Err()
		}
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-p.failed:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (p *producer) send(ctx context.Context, r *kgo.Record) {
	p.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
		if err == nil {
			p.acknowledged.Add(1)
			return
		}
		p.once.Do(func() {
			p.err = fmt.Errorf("produce to %s: %w", p.topic, err)
			close(p.failed)
		})
	})
}

// record makes a record of a line.
func (p *producer) record(line []byte) (*kgo.Record, error) {
	o := &p.options
	r := &kgo.Record{Topic: p.topic, Value: line}
	if o.partition >= 0 {
		r.Partition = o.partition
	}
	if o.separator != "" {
		key, value, ok := bytes.Cut(line, []byte(o.separator))
		if !ok {
			return nil, fmt.Errorf("no key separator %q in %.60q", o.separator, line)
		}
		r.Key, r.Value = key, value
	}
	if o.format == "json" && !json.Valid(r.Value) {
		return nil, fmt.Errorf("no JSON document: %.60q", r.Value)
	}
	if len(o.fields) > 0 {
		key, err := keyOf(line, o.fields)
		if err != nil {
			return nil, err
		}
		r.Key = key
	}
	return r, nil
}

// keyOf is the record key made of members of a JSON object.
func keyOf(line []byte, fields []string) ([]byte, error) {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fmt.Errorf("--key-field needs JSON objects: %w", err)
	}
	parts := make([]json.RawMessage, len(fields))
	for i, f := range fields {
		v, ok := row[f]
		if !ok {
			return nil, fmt.Errorf("no member %q for the key", f)
		}
		parts[i] = v
	}
	if len(parts) == 1 && parts[0][0] == '"' {
		var s string
		err := json.Unmarshal(parts[0], &s)
		return []byte(s), err
	}
	return json.Marshal(parts)
}

// showProgress rewrites one line on a terminal, five times a second. The returned function ends it and clears the line.
func (p *producer) showProgress(w io.Writer, begin time.Time) func() {
	if !isTerminal(w) {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-stop:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case now := <-t.C:
				n := p.acknowledged.Load()
				fmt.Fprintf(w, "\r%d records, %.0f/s\x1b[K", n, float64(n)/now.Sub(begin).Seconds())
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
