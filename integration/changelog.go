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

// ChangelogRow is the newest value of a key.
type ChangelogRow struct {
	Partition int32
	Value     json.RawMessage
}

// Step reads a row of an aggregate that counts and sums: the fields that the pipelines of these tests give it.
func (r ChangelogRow) Step() (Step, error) {
	var v struct {
		N       int64  `json:"n"`
		Count   int64  `json:"count"`
		Balance int64  `json:"balance"`
		Sum     int64  `json:"sum"`
		LastID  string `json:"last_id"`
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return Step{}, fmt.Errorf("state %q: %w", r.Value, err)
	}
	return Step{N: v.N + v.Count, Sum: v.Balance + v.Sum, Last: v.LastID}, nil
}

// ChangelogRows reads a stage's changelog to its end, committed records only, and returns the keys of a state that have a
// value, each with its newest. A key that has values in two partitions is an error.
func ChangelogRows(ctx context.Context, binary, brokers, topic, state string) (map[string]ChangelogRow, error) {
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

func foldChangelog(text, state string) (map[string]ChangelogRow, error) {
	type place struct {
		partition int32
		key       string
	}
	live := map[place]json.RawMessage{}
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
		live[place{line.Partition, line.Key}] = line.Value
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("changelog: %w", err)
	}
	keys := map[string]ChangelogRow{}
	for at, value := range live {
		if len(value) == 0 || string(value) == "null" {
			continue
		}
		if other, twice := keys[at.key]; twice {
			return nil, fmt.Errorf("key %q has state in partitions %d and %d", at.key, other.Partition, at.partition)
		}
		keys[at.key] = ChangelogRow{at.partition, value}
	}
	return keys, nil
}
