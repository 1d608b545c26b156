package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/processor"
	"github.com/kafka-processor/processor/spec"
)

func newPlanCommand() *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use: "plan -f FILE", Short: "Show what a spec becomes: stages, jobs, topics and the guarantee of each edge", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, faults := loadSpec(file)
			for _, f := range faults {
				fmt.Fprintln(cmd.ErrOrStderr(), f)
			}
			if spec.Refused(faults) {
				return errShown
			}
			plan, _ := processor.NewPlan(s)
			d := plan.Describe()
			switch format {
			case "text":
				fmt.Fprint(cmd.OutOrStdout(), s.RedactText(d.Text()))
				return nil
			case "json":
				b, err := json.MarshalIndent(d, "", "  ")
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), s.RedactText(string(b)))
				}
				return err
			}
			return fmt.Errorf("--format %s is unknown: text or json", format)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "spec file")
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	requireFlag(cmd, "file")
	return cmd
}
