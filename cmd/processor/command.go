package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/processor"
	"github.com/kafka-processor/processor/processor/control"
)

func newStopCommand() *cobra.Command {
	return newControlCommand("stop PIPELINE", "Stop a pipeline; when it returns nothing of it can commit any more", control.Stop)
}

func newStartCommand() *cobra.Command {
	return newControlCommand("start PIPELINE", "Start a stopped pipeline", control.Start)
}

// newControlCommand makes a command that changes the run state.
func newControlCommand(use, short string, kind control.CommandKind) *cobra.Command {
	var c kafkaFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			cl, err := c.open(ctx)
			if err != nil {
				return err
			}
			defer cl.Close()
			return changeRun(ctx, cmd, processor.Commander{Cluster: cl, Pipeline: args[0]}, kind)
		},
	}
	c.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "give up after this; the next command finishes what was begun")
	return cmd
}

func changeRun(ctx context.Context, cmd *cobra.Command, c processor.Commander, kind control.CommandKind) error {
	out := cmd.OutOrStdout()
	if _, found, err := processor.PeekControl(ctx, c.Cluster, c.Pipeline); err != nil {
		return err
	} else if !found {
		return fmt.Errorf("there is no pipeline %s on this Kafka: processor run -f FILE creates it", c.Pipeline)
	}
	c.Progress = func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), "  "+step) }
	r, err := c.Run(ctx, kind, control.Params{By: processor.CommandName(cmd.Name()), Now: time.Now().UnixMilli()})
	if err != nil {
		return fmt.Errorf("%s %s was not finished: %w; the next command finishes it", cmd.Name(), c.Pipeline, err)
	}
	since := time.UnixMilli(r.State.Since).UTC().Format(time.RFC3339)
	switch r.Kind {
	case control.Done:
		fmt.Fprintf(out, "%s: %s, generation %d\n", c.Pipeline, r.State.Run, r.State.Generation)
	case control.AlreadySo:
		fmt.Fprintf(out, "%s: %s already, since %s, generation %d\n", c.Pipeline, r.State.Run, since, r.State.Generation)
	case control.Superseded:
		return fmt.Errorf("another command (%s) has overtaken this one: %s is %s, generation %d", r.State.By, c.Pipeline, r.State.Run, r.State.Generation)
	default:
		return fmt.Errorf("%s refused: %s", cmd.Name(), r.Reason)
	}
	return nil
}
