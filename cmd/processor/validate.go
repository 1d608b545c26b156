package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/processor"
	"github.com/kafka-processor/processor/spec"
)

func newValidateCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Print every fault of a spec as FILE:LINE:COLUMN; exit 1 unless there are only warnings",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, faults := loadSpec(file)
			for _, f := range faults {
				fmt.Fprintln(cmd.OutOrStdout(), f)
			}
			if spec.Refused(faults) {
				return errShown
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok, %s\n", file, counted(len(s.Computations), "computation"))
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "spec file")
	requireFlag(cmd, "file")
	return cmd
}

// loadSpec reads a spec and gives all of its faults, ordered by position. The spec is nil if it could not be read at all.
func loadSpec(file string) (*spec.Spec, []spec.Fault) {
	s, faults := spec.Load(file)
	if s != nil {
		faults = append(faults, s.Redact(faultsOf(s))...)
	}
	return s, spec.Sort(faults)
}

// faultsOf is everything that is wrong with a spec beyond its syntax.
func faultsOf(s *spec.Spec) []spec.Fault {
	faults := spec.Validate(s)
	_, more := processor.NewPlan(s)
	return append(faults, more...)
}

// requireFlag makes a flag of cmd obligatory; a name that is no flag is a mistake in the program.
func requireFlag(cmd *cobra.Command, name string) {
	if err := cmd.MarkFlagRequired(name); err != nil {
		panic(err)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
