// Command processor runs and looks after stream processing pipelines. One file per subcommand.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// errShown is returned by a command that has printed what is wrong itself.
var errShown = errors.New("")

// run executes the command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	started := false // once a command runs, its errors are no longer about usage
	root := newRootCommand(stderr, &started)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	switch {
	case err == nil:
		return exitDone
	case !started:
		fmt.Fprintf(stderr, "processor: %v\nRun \"processor --help\" for usage.\n", err)
		return exitUsage
	case !errors.Is(err, errShown):
		fmt.Fprintf(stderr, "processor: %v\n", err)
	}
	return exitError
}

func newRootCommand(stderr io.Writer, started *bool) *cobra.Command {
	level := slog.LevelInfo
	root := &cobra.Command{
		Use:           "processor",
		Short:         "Exactly-once stream processing beside Kafka",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(stderr)
			_ = cmd.Usage()
			return errors.New("a command is missing")
		},
		PersistentPreRun: func(*cobra.Command, []string) {
			slog.SetDefault(slog.New(newLogHandler(stderr, level)))
		},
	}
	root.PersistentFlags().TextVar(&level, "log-level", slog.LevelInfo, "least level of messages: debug, info, warn or error")
	for _, newCommand := range []func() *cobra.Command{
		newValidateCommand,
		newSchemaCommand,
		newTopicCommand,
		newBrokerCommand,
		newRunCommand,
		newPlanCommand,
		newStatusCommand,
		newStopCommand,
		newStartCommand,
	} {
		cmd := newCommand()
		noteStart(cmd, started)
		root.AddCommand(cmd)
	}
	return root
}

// noteStart makes cmd and its subcommands set started once their arguments and flags have been found good. (A hook before
// the run would be too early: required flags are checked after those.)
func noteStart(cmd *cobra.Command, started *bool) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return inner(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		noteStart(sub, started)
	}
}

// newLogHandler writes text for people on a terminal and JSON for programs elsewhere.
func newLogHandler(w io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(w) {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
