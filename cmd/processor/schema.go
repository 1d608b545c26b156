package main

import (
	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/spec"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a spec, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(spec.JSONSchema())
			return err
		},
	}
}
