package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/processor"
)

func newStatusCommand() *cobra.Command {
	var c kafkaFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status PIPELINE", Short: "Show a pipeline's state, jobs, lag and troubles", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.open(cmd.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			r, err := processor.NewReport(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return printReport(cmd.OutOrStdout(), r)
		},
	}
	c.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printReport(w io.Writer, r *processor.Report) error {
	fmt.Fprintf(w, "%s: %s since %s, generation %d, lag %d\n\n", r.Pipeline, r.Run, r.Since.Format(time.RFC3339), r.Generation, r.Lag)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tWORKER\tTERM\tEPOCH\tLAST RECORD\tIN\tOUT\tSKIPPED\tDEAD LETTER\tDUPLICATES\tGAPS")
	for _, j := range r.Jobs {
		var in, out, skipped, dead, dup, gaps uint64
		for _, s := range j.Stats {
			in, out, skipped, dead, dup, gaps = in+s.In, out+s.Out, skipped+s.Skipped, dead+s.DeadLetter, dup+s.Duplicates, gaps+s.Gaps
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%d.%d\t%s, %.1f s ago\t%d\t%d\t%d\t%d\t%d\t%d\n", j.Job, j.Worker, j.Term, j.EpochTerm, j.EpochNumber, j.Last, j.Silent, in, out, skipped, dead, dup, gaps)
	}
	fmt.Fprintln(t, "\nSTAGE\tTOPIC\tGROUP\tLAG")
	for _, in := range r.Inputs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\n", in.Stage, in.Topic, in.Group, in.Lag)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, j := range r.Jobs {
		if j.Alarm != "" {
			fmt.Fprintf(w, "\njob %d: %s\n", j.Job, j.Alarm)
		}
		for _, p := range j.Troubles {
			if p.Stage == "" {
				fmt.Fprintf(w, "\nfailing: job %d cannot commit since %s, %d attempts\n  %s\n", j.Job, time.UnixMilli(p.Since).UTC().Format(time.RFC3339), p.Attempts, p.Cause)
				continue
			}
			fmt.Fprintf(w, "\nparked: stage %s partition %d waits before topic %s offset %d, key %q, since %s, %d attempts, next %s\n  %s\n", p.Stage, p.Partition, p.Topic, p.Offset, p.Key,
				time.UnixMilli(p.Since).UTC().Format(time.RFC3339), p.Attempts, time.UnixMilli(p.NextRetry).UTC().Format(time.RFC3339), p.Cause)
		}
	}
	return nil
}
