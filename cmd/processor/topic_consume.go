package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/processor"
)

type consumeOptions struct {
	from       string
	format     string
	isolation  string
	limit      int
	partitions []int32
	exitAtEnd  bool
	follow     bool
}

func newTopicConsume(k *kafkaFlags) *cobra.Command {
	o := consumeOptions{}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print records, only committed ones unless told otherwise",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, k, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "earliest", "earliest, latest, an OFFSET, or an RFC 3339 TIME")
	f.StringVar(&o.format, "format", "value", "value, key-value (a tab between), json (one object a line) or state (records of a changelog)")
	f.StringVar(&o.isolation, "isolation", "read_committed", "read_committed, or read_uncommitted to see open and aborted transactions too")
	f.IntVarP(&o.limit, "count", "n", 0, "end after so many records; 0: no limit")
	f.Int32SliceVar(&o.partitions, "partition", nil, "only these partitions")
	f.BoolVar(&o.exitAtEnd, "exit-at-end", false, "end at the ends that the partitions have now")
	f.BoolVar(&o.follow, "follow", true, "wait for further records at the end")
	cmd.MarkFlagsMutuallyExclusive("exit-at-end", "follow")
	return cmd
}

func (o *consumeOptions) run(cmd *cobra.Command, k *kafkaFlags, topic string) error {
	if _, err := recordFormat(o.format, nil); err != nil {
		return err
	}
	from, err := parseStart(o.from)
	if err != nil {
		return err
	}
	if o.isolation != "read_committed" && o.isolation != "read_uncommitted" {
		return fmt.Errorf("--isolation %q is unknown: use read_committed or read_uncommitted", o.isolation)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	cl, err := k.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	write, err := o.writer(ctx, k, topic)
	if err != nil {
		return err
	}
	r, err := newTopicReader(ctx, cl, topic, o.isolation == "read_committed")
	if err != nil {
		return err
	}
	if err := r.place(ctx, o.partitions, from); err != nil {
		return err
	}
	if o.exitAtEnd || !o.follow {
		if err := r.stopAtEnd(ctx); err != nil {
			return err
		}
	}
	return ignoreClosedPipe(o.print(cmd.OutOrStdout(), write, func(each func(*kgo.Record) (bool, error), flush func() error) error {
		return r.read(ctx, each, flush)
	}))
}

// writer is that of the format; for a changelog it learns from control which function's state it prints.
func (o *consumeOptions) writer(ctx context.Context, k *kafkaFlags, topic string) (recordWriter, error) {
	if o.format != "state" {
		return recordFormat(o.format, nil)
	}
	c, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	show, err := processor.NewStateShower(ctx, c, topic)
	if err != nil {
		return nil, err
	}
	return recordFormat(o.format, show)
}

// print writes what read brings, up to the limit.
func (o *consumeOptions) print(out io.Writer, write recordWriter, read func(func(*kgo.Record) (bool, error), func() error) error) error {
	w := bufio.NewWriterSize(out, 64<<10)
	n := 0
	return read(func(r *kgo.Record) (bool, error) {
		if err := write(w, r); err != nil {
			return false, err
		}
		n++
		return o.limit == 0 || n < o.limit, nil
	}, w.Flush)
}

// ignoreClosedPipe makes "... | head" a good end.
func ignoreClosedPipe(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
