package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/internal/embedded"
)

func newBrokerCommand() *cobra.Command {
	var listen, data string
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone, to try several workers on one machine; workers find it with --embedded=DIR",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			b, err := embedded.Start(data, embedded.Options{Listen: listen, Partitions: 8, Logger: slog.Default()})
			if err != nil {
				return err
			}
			defer b.Close()
			fmt.Fprintf(cmd.OutOrStdout(), "broker at %s, data in %s; Ctrl-C ends it\n", b.Addresses()[0], data)
			<-ctx.Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "loopback host:port; default: the port that the folder's last broker had, at first 9092 if it is free")
	cmd.Flags().StringVar(&data, "data", defaultFolder, "folder of the broker's data")
	return cmd
}
