package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// GroupLag is one row of Kafka's own group tool. A number that it shows as "-" is -1: nothing is committed there.
type GroupLag struct {
	Topic               string
	Partition           int
	Committed, End, Lag int64
}

// DescribeGroup asks Kafka's own tool, as an operator would.
func DescribeGroup(ctx context.Context, server *KafkaServer, group string) ([]GroupLag, error) {
	text, err := server.Tool(ctx, "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
		"--bootstrap-server", server.Brokers, "--describe", "--group", group)
	if err != nil {
		return nil, err
	}
	return parseGroupTable(text)
}

// parseGroupTable finds columns by their names, since releases add some.
func parseGroupTable(text string) ([]GroupLag, error) {
	var rows []GroupLag
	var column map[string]int
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] == "GROUP" {
			column = map[string]int{}
			for i, name := range fields {
				column[name] = i
			}
			continue
		}
		if column == nil || len(fields) < len(column)-3 || len(fields) == 0 {
			continue
		}
		row := GroupLag{Topic: fields[column["TOPIC"]]}
		partition := int64(-1)
		for name, target := range map[string]*int64{
			"PARTITION": &partition, "CURRENT-OFFSET": &row.Committed, "LOG-END-OFFSET": &row.End, "LAG": &row.Lag,
		} {
			at, ok := column[name]
			if !ok || at >= len(fields) {
				return nil, fmt.Errorf("group tool: no %s in %q", name, line)
			}
			value, err := strconv.ParseInt(fields[at], 10, 64)
			if fields[at] == "-" {
				value, err = -1, nil
			}
			if err != nil {
				return nil, fmt.Errorf("group tool: %s in %q: %w", name, line, err)
			}
			*target = value
		}
		row.Partition = int(partition)
		rows = append(rows, row)
	}
	if column == nil {
		return nil, fmt.Errorf("group tool: no table in %q", text)
	}
	return rows, nil
}

// TopicLag sums the rows of a topic. It fails when fewer or more partitions are shown than the topic has, or one has nothing
// committed.
func TopicLag(rows []GroupLag, topic string, partitions int) (int64, error) {
	var lag int64
	shown := 0
	for _, row := range rows {
		if row.Topic != topic {
			continue
		}
		if row.Committed < 0 || row.Lag < 0 {
			return 0, fmt.Errorf("topic %s, partition %d: the tool shows no committed offset", topic, row.Partition)
		}
		lag += row.Lag
		shown++
	}
	if shown != partitions {
		return 0, fmt.Errorf("topic %s: the tool shows %d of %d partitions", topic, shown, partitions)
	}
	return lag, nil
}
