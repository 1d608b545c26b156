package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newTopicCommand() *cobra.Command {
	k := &kafkaFlags{}
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "Create, describe, alter and delete topics, write records to them and read them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	k.register(cmd)
	cmd.AddCommand(newTopicCreate(k), newTopicDescribe(k), newTopicAlter(k), newTopicDelete(k), newTopicProduce(k), newTopicConsume(k))
	return cmd
}

func newTopicCreate(k *kafkaFlags) *cobra.Command {
	var partitions int32
	var replicas int16
	var configs []string
	var ifMissing bool
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := parseConfigs(configs)
			if err != nil {
				return err
			}
			cl, err := k.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			_, err = kadm.NewClient(cl).CreateTopic(cmd.Context(), partitions, replicas, set, args[0])
			switch {
			case errors.Is(err, kerr.TopicAlreadyExists) && ifMissing:
				fmt.Fprintf(cmd.OutOrStdout(), "topic %s exists\n", args[0])
				return nil
			case err != nil:
				return fmt.Errorf("create topic %s: %w", args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "topic %s created\n", args[0])
			return nil
		},
	}
	f := cmd.Flags()
	f.Int32Var(&partitions, "partitions", -1, "number of partitions; -1: the broker's default")
	f.Int16Var(&replicas, "replication-factor", -1, "replicas of each partition; -1: the broker's default")
	f.StringArrayVar(&configs, "config", nil, "topic setting NAME=VALUE; may be repeated")
	f.BoolVar(&ifMissing, "if-not-exists", false, "a topic that exists is no error")
	return cmd
}

// parseConfigs takes NAME=VALUE apart.
func parseConfigs(list []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, c := range list {
		name, value, ok := strings.Cut(c, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--config %q is not NAME=VALUE", c)
		}
		out[name] = &value
	}
	return out, nil
}

func newTopicDescribe(k *kafkaFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "describe TOPIC",
		Short: "Print a topic's partitions, offsets and settings that are not the default",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := k.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			return describe(cmd, cl, args[0])
		},
	}
}

func describe(cmd *cobra.Command, cl *kgo.Client, topic string) error {
	ctx, adm := cmd.Context(), kadm.NewClient(cl)
	t, err := describeTopic(ctx, cl, topic)
	if err != nil {
		return err
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return fmt.Errorf("start offsets of %s: %w", topic, err)
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return fmt.Errorf("end offsets of %s: %w", topic, err)
	}
	stable, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return fmt.Errorf("stable offsets of %s: %w", topic, err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return fmt.Errorf("settings of %s: %w", topic, err)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s  id %s  %s\n", topic, t.ID, counted(len(t.Partitions), "partition"))
	printSettings(out, configs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tLEADER\tREPLICAS\tIN SYNC\tSTART\tSTABLE\tEND")
	for _, p := range t.Partitions.Sorted() {
		s, _ := starts.Lookup(topic, p.Partition)
		e, _ := ends.Lookup(topic, p.Partition)
		c, _ := stable.Lookup(topic, p.Partition)
		fmt.Fprintf(w, "%d\t%d\t%v\t%v\t%d\t%d\t%d\n", p.Partition, p.Leader, p.Replicas, p.ISR, s.Offset, c.Offset, e.Offset)
	}
	return w.Flush()
}

func printSettings(out io.Writer, configs kadm.ResourceConfigs) {
	for _, r := range configs {
		for _, c := range r.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
				fmt.Fprintf(out, "%s=%s\n", c.Key, c.MaybeValue())
			}
		}
	}
}

func newTopicAlter(k *kafkaFlags) *cobra.Command {
	var partitions int
	var configs, remove []string
	cmd := &cobra.Command{
		Use:   "alter TOPIC",
		Short: "Add partitions, change or remove settings",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := parseConfigs(configs)
			if err != nil {
				return err
			}
			if partitions == 0 && len(set)+len(remove) == 0 {
				return errors.New("nothing to alter: say --partitions, --config or --delete-config")
			}
			cl, err := k.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			return alterTopic(cmd, cl, args[0], partitions, set, remove)
		},
	}
	f := cmd.Flags()
	f.IntVar(&partitions, "partitions", 0, "new number of partitions, more than now")
	f.StringArrayVar(&configs, "config", nil, "topic setting NAME=VALUE; may be repeated")
	f.StringArrayVar(&remove, "delete-config", nil, "topic setting that goes back to its default; may be repeated")
	return cmd
}

func alterTopic(cmd *cobra.Command, cl *kgo.Client, topic string, partitions int, set map[string]*string, remove []string) error {
	ctx, adm := cmd.Context(), kadm.NewClient(cl)
	if _, err := describeTopic(ctx, cl, topic); err != nil {
		return err
	}
	if partitions > 0 {
		r, err := adm.UpdatePartitions(ctx, partitions, topic)
		if err == nil {
			err = r.Error()
		}
		if err != nil {
			return fmt.Errorf("set %s to %s: %w", topic, counted(partitions, "partition"), err)
		}
	}
	var changes []kadm.AlterConfig
	for name, value := range set {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	for _, name := range remove {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	if len(changes) > 0 {
		r, err := adm.AlterTopicConfigs(ctx, changes, topic)
		if err == nil && len(r) == 1 {
			err = r[0].Err
		}
		if err != nil {
			return fmt.Errorf("alter settings of %s: %w", topic, err)
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "topic %s altered\n", topic)
	return nil
}

func newTopicDelete(k *kafkaFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "delete TOPIC",
		Short: "Delete a topic and all of its records",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := k.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			if _, err := describeTopic(cmd.Context(), cl, args[0]); err != nil {
				return err
			}
			if _, err := kadm.NewClient(cl).DeleteTopic(cmd.Context(), args[0]); err != nil {
				return fmt.Errorf("delete topic %s: %w", args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "topic %s deleted\n", args[0])
			return nil
		},
	}
}
