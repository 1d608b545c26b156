package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/kafka-processor/processor/internal/embedded"
)

func newBrokerCommand() *cobra.Command {
	var listen, data string
	var fsync bool
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone, to try several workers on one machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			b, err := embedded.Start(data, embedded.Options{Listen: listen, Partitions: 8, SyncWrites: fsync, Logger: slog.Default()})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "broker at %s, data in %s; workers: processor run -f FILE --embedded=%s\n", b.Addresses()[0], data, data)
			<-ctx.Done()
			return b.Close()
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "loopback address; default: the folder's last port, at first 127.0.0.1:9092 if it is free")
	cmd.Flags().StringVar(&data, "data", defaultFolder, "folder of its data")
	cmd.Flags().BoolVar(&fsync, "fsync", false, "fsync every batch, which survives a crash of the machine too and is some fifty times slower")
	return cmd
}
