package integration

import (
	"context"
	"fmt"
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Step is one output of a key: its running count, sum, and the id of the input that it answers ("" where inputs have none).
type Step struct {
	N, Sum int64
	Last   string
}

// History is, for every key, the one right sequence of its outputs: step i has N = i+1, and ids grow.
type History map[string][]Step

// Verdict counts what is wrong with outputs.
type Verdict struct {
	Records   int // outputs looked at
	Missing   int // inputs without an output
	Doubled   int // outputs that answer an input again, or one that there never was
	Different int // outputs with another payload, out of order, or in another partition than their key's
	Examples  []string
}

// Exact tells whether nothing is wrong.
func (v Verdict) Exact() bool { return v.Missing == 0 && v.Doubled == 0 && v.Different == 0 }

func (v Verdict) String() string {
	text := fmt.Sprintf("%d outputs: %d missing, %d doubled, %d different", v.Records, v.Missing, v.Doubled, v.Different)
	for _, example := range v.Examples {
		text += "\n  " + example
	}
	return text
}

func (v *Verdict) example(format string, arguments ...any) {
	if len(v.Examples) < 10 {
		v.Examples = append(v.Examples, fmt.Sprintf(format, arguments...))
	}
}

// Checker compares outputs with a history, one after the other, and its verdict says what is wrong with all of them.
type Checker struct {
	history History
	keys    map[string]*progress
	verdict Verdict
}

type progress struct {
	seen      []bool
	next      int // the step after the last one seen
	partition int32
}

// NewChecker starts without outputs.
func NewChecker(history History) *Checker {
	return &Checker{history: history, keys: make(map[string]*progress, len(history))}
}

// Observe takes the next output of a key.
func (c *Checker) Observe(key string, partition int32, step Step) {
	c.verdict.Records++
	steps := c.history[key]
	p := c.keys[key]
	if p == nil {
		p = &progress{seen: make([]bool, len(steps)), partition: partition}
		c.keys[key] = p
	}
	at := position(steps, step)
	switch {
	case at < 0 && step.N > int64(len(steps)):
		c.verdict.Doubled++
		c.verdict.example("%s: %+v, but it has only %d inputs", key, step, len(steps))
		return
	case at < 0:
		c.verdict.Different++
		c.verdict.example("%s: %+v answers no input", key, step)
		return
	case p.seen[at]:
		c.verdict.Doubled++
		c.verdict.example("%s: %+v again", key, step)
		return
	}
	p.seen[at] = true
	if step != steps[at] || at < p.next || partition != p.partition {
		c.verdict.Different++
		c.verdict.example("%s: %+v in partition %d after step %d of partition %d; expected %+v", key, step, partition, p.next, p.partition, steps[at])
	}
	p.next = max(p.next, at+1)
}

// Unreadable takes an output that is not one of the pipeline's at all.
func (c *Checker) Unreadable(err error) {
	c.verdict.Records++
	c.verdict.Different++
	c.verdict.example("%v", err)
}

// position finds the input that a step answers: by its id where inputs have one, else by its count. -1: there is none.
func position(steps []Step, step Step) int {
	if len(steps) > 0 && steps[0].Last != "" {
		i := sort.Search(len(steps), func(i int) bool { return steps[i].Last >= step.Last })
		if i < len(steps) && steps[i].Last == step.Last {
			return i
		}
		return -1
	}
	if step.N < 1 || step.N > int64(len(steps)) {
		return -1
	}
	return int(step.N - 1)
}

// Verdict is what is wrong so far, every input that has no output yet included.
func (c *Checker) Verdict() Verdict {
	verdict := c.verdict
	verdict.Examples = append([]string(nil), c.verdict.Examples...)
	for key, steps := range c.history {
		p := c.keys[key]
		for i, step := range steps {
			if p == nil || !p.seen[i] {
				verdict.Missing++
				verdict.example("%s: no output %+v", key, step)
			}
		}
	}
	return verdict
}

// Decoder takes key and step from an output record.
type Decoder func(*kgo.Record) (string, Step, error)

// CheckTopic compares the committed records of a topic with a history.
func CheckTopic(ctx context.Context, brokers, topic string, history History, decode Decoder) (Verdict, error) {
	checker := NewChecker(history)
	err := ReadCommitted(ctx, brokers, topic, func(r *kgo.Record) {
		key, step, err := decode(r)
		if err != nil {
			checker.Unreadable(fmt.Errorf("topic %s, partition %d, offset %d: %w", r.Topic, r.Partition, r.Offset, err))
			return
		}
		checker.Observe(key, r.Partition, step)
	})
	return checker.Verdict(), err
}
