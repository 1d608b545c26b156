package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const padding = "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"

// Events is the input of the count-and-sum pipelines: JSON objects of about 200 bytes, keyed by user.
type Events struct {
	Records, Users int
	// Sequential gives the users in turn; else each record's is drawn by the seed.
	Sequential bool
	Seed       uint64
}

func (e Events) user(i int) int {
	if e.Sequential {
		return i % e.Users
	}
	return int(mix(e.Seed+uint64(i)) % uint64(e.Users))
}

// Record is event i; its member ts is the microsecond (Unix time) of the call.
func (e Events) Record(i int) *kgo.Record {
	user := fmt.Sprintf("key-%08d", e.user(i))
	return &kgo.Record{
		Key:   []byte(user),
		Value: fmt.Appendf(nil, `{"user":"%s","amount":%d,"ts":%d,"pad":"%s"}`, user, i%100, time.Now().UnixMicro(), padding),
	}
}

// History folds the first n events; rename says under which key a user is counted.
func (e Events) History(n int, rename func(string) string) History {
	history := make(History, e.Users)
	for i := range n {
		key := rename(fmt.Sprintf("key-%08d", e.user(i)))
		steps := history[key]
		next := Step{N: 1, Sum: int64(i % 100)}
		if len(steps) > 0 {
			next.N += steps[len(steps)-1].N
			next.Sum += steps[len(steps)-1].Sum
		}
		history[key] = append(steps, next)
	}
	return history
}

// Same is the key of a pipeline that does not re-key.
func Same(key string) string { return key }

// Reversed is the key of the pipeline that re-keys.
func Reversed(key string) string {
	b := []byte(key)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// DecodeTotal reads an output of a count-and-sum pipeline. The member user may be missing (the peer writes none).
func DecodeTotal(r *kgo.Record) (string, Step, error) {
	var row struct {
		User  *string `json:"user"`
		Count *int64  `json:"count"`
		Sum   *int64  `json:"sum"`
	}
	if err := json.Unmarshal(r.Value, &row); err != nil {
		return "", Step{}, fmt.Errorf("total %q: %w", r.Value, err)
	}
	if row.Count == nil || row.Sum == nil || row.User != nil && *row.User != string(r.Key) {
		return "", Step{}, fmt.Errorf("total %q under key %q: incomplete, or of another user", r.Value, r.Key)
	}
	return string(r.Key), Step{N: *row.Count, Sum: *row.Sum}, nil
}

// WordHistory folds lines: lower case, words between single spaces.
func WordHistory(lines []string) History {
	history := History{}
	for _, line := range lines {
		for word := range strings.SplitSeq(strings.ToLower(line), " ") {
			if word != "" {
				history[word] = append(history[word], Step{N: int64(len(history[word]) + 1)})
			}
		}
	}
	return history
}

// DecodeWord reads an output of the word count.
func DecodeWord(r *kgo.Record) (string, Step, error) {
	var row struct {
		Word *string `json:"word"`
		N    *int64  `json:"n"`
	}
	if err := json.Unmarshal(r.Value, &row); err != nil {
		return "", Step{}, fmt.Errorf("count %q: %w", r.Value, err)
	}
	if row.Word == nil || row.N == nil || *row.Word != string(r.Key) {
		return "", Step{}, fmt.Errorf("count %q under key %q: incomplete, or of another word", r.Value, r.Key)
	}
	return *row.Word, Step{N: *row.N}, nil
}
