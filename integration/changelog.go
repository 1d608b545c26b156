package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// changelogLine is what `processor topic consume --format state` prints for a record.
type changelogLine struct {
	Partition int32           `json:"partition"`
	Offset    int64           `json:"offset"`
	Kind      string          `json:"kind"`
	Name      string          `json:"name"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
}

// ChangelogKeys reads a stage's changelog to its end, committed records only, and returns the keys of a state that have a
// value, with the partition of each. A key that has values in two partitions is an error.
func ChangelogKeys(ctx context.Context, binary, brokers, topic, state string) (map[string]int32, error) {
	admin, closeAdmin, err := Admin(brokers)
	if err != nil {
		return nil, err
	}
	defer closeAdmin()
	if _, err := closedEnds(ctx, admin, topic); err != nil {
		return nil, err
	}
	out, err := Command(ctx, binary, "topic", "consume", topic, "--format", "state", "--from", "earliest", "--exit-at-end", "--brokers", brokers)
	if err != nil {
		return nil, err
	}
	if out.Status != 0 {
		return nil, fmt.Errorf("consume changelog %s: exit status %d: %s", topic, out.Status, out.Stderr)
	}
	return foldChangelog(out.Stdout, state)
}

func foldChangelog(text, state string) (map[string]int32, error) {
	type place struct {
		partition int32
		key       string
	}
	live := map[place]bool{}
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var line changelogLine
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("changelog record %q: %w", scanner.Text(), err)
		}
		if line.Kind != "state" || line.Name != state {
			continue
		}
		live[place{line.Partition, line.Key}] = len(line.Value) > 0 && string(line.Value) != "null"
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("changelog: %w", err)
	}
	keys := map[string]int32{}
	for at, has := range live {
		if !has {
			continue
		}
		if other, twice := keys[at.key]; twice {
			return nil, fmt.Errorf("key %q has state in partitions %d and %d", at.key, other, at.partition)
		}
		keys[at.key] = at.partition
	}
	return keys, nil
}
