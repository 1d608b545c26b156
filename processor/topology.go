package processor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/spec"
)

// Topology is what the cluster adds to a plan: the topics with their ids, partitions and limits.
type Topology struct {
	Topics     map[string]TopicInfo
	Partitions []int32 // by stage
}

// TopicInfo is one topic that the plan uses.
type TopicInfo struct {
	ID         [16]byte
	Partitions int32
	MaxBytes   int32         // largest record batch that the broker takes (max.message.bytes)
	CopyLife   time.Duration // how long a local copy may have been away from a changelog's end: half of delete.retention.ms
}

// need is one topic that has to be there.
type need struct {
	name       string
	kind       string // jobs, control, stream, state, sink, source, dead letter
	partitions int32  // wanted; -1: the broker's default; 0: any
	atLeast    bool   // more partitions are fine
	grow       bool   // fewer are added
	create     bool
	configs    map[string]string
	at         string // what a command needs to reach this cluster, such as " --brokers host:port"
}

const forever = "-1"

var anyTime = strconv.FormatInt(math.MaxInt64, 10)

// internalConfigs: nothing of ours expires by time or size, its owner trims what has been consumed. Event times may lie anywhere:
// Kafka otherwise refuses timestamps over an hour ahead, which a swift attempt would meet for ever.
func internalConfigs(policy string, more map[string]string) map[string]string {
	c := map[string]string{"cleanup.policy": policy, "message.timestamp.type": "CreateTime",
		"message.timestamp.before.max.ms": anyTime, "message.timestamp.after.max.ms": anyTime}
	if policy == "delete" {
		c["retention.ms"], c["retention.bytes"] = forever, forever
	}
	for k, v := range more {
		c[k] = v
	}
	return c
}

// needs lists the plan's topics, `.jobs` last: it is what workers wait for.
func (p *Plan) needs(sources map[string]int32, createSources bool) []need {
	out := []need{}
	seen := map[string]bool{}
	add := func(n need) {
		if !seen[n.name] {
			seen[n.name] = true
			out = append(out, n)
		}
	}
	for _, st := range p.Stages {
		for _, in := range st.Inputs {
			if in.Internal() {
				continue
			}
			add(need{name: in.Topic, kind: "source", partitions: 0, create: createSources})
		}
	}
	add(need{name: spec.ControlTopic(p.Pipeline), kind: "control", partitions: 1, create: true, configs: internalConfigs("compact", nil)})
	for _, st := range p.Stages {
		if st.StateTopic != "" {
			add(need{name: st.StateTopic, kind: "state", partitions: p.partitions(st, sources), grow: true, create: true, configs: internalConfigs("compact", nil)})
		}
		for _, n := range st.Nodes {
			for _, ways := range append(slices.Clone(n.Routes), n.DeadLetter) {
				for _, r := range ways {
					p.needRoute(n, r, add)
				}
			}
		}
	}
	add(need{name: spec.JobsTopic(p.Pipeline), kind: "jobs", partitions: p.Jobs, atLeast: true, grow: true, create: true, configs: internalConfigs("delete", nil)})
	return out
}

func (p *Plan) needRoute(n *Node, r Route, add func(need)) {
	switch r.Kind {
	case ToStage:
		var more map[string]string
		if st := p.Spec.Streams.Get(r.Stream); st != nil {
			more = st.Settings
		}
		add(need{name: r.Topic, kind: "stream", partitions: r.Partitions, create: true, configs: internalConfigs("delete", more)})
	case ToSink:
		nd := need{name: r.Topic, kind: "sink", partitions: 0, create: true}
		for i := range n.Computation.Sinks {
			if k := n.Computation.Sinks[i].Value.Kafka; k != nil && k.Topic == r.Topic {
				nd.configs = k.Settings
				nd.create = k.Create == nil || *k.Create
				if k.Partitions > 0 {
					nd.partitions, nd.atLeast = int32(k.Partitions), true
				}
			}
		}
		add(nd)
	}
}

// partitions of a stage: the largest of its inputs.
func (p *Plan) partitions(st *Stage, sources map[string]int32) int32 {
	n := st.Partitions
	for _, in := range st.Inputs {
		if !in.Internal() {
			n = max(n, sources[in.Topic])
		}
	}
	return n
}

// EnsureOptions say what may be created.
type EnsureOptions struct {
	Replication   int16
	CreateSources bool     // with the embedded broker
	Brokers       []string // for the commands in messages
}

// at is what a command in a message needs to reach the same cluster.
func (o EnsureOptions) at() string {
	if len(o.Brokers) == 0 || len(o.Brokers) == 1 && o.Brokers[0] == "127.0.0.1:9092" {
		return ""
	}
	return " --brokers " + strings.Join(o.Brokers, ",")
}

// ErrSourceMissing says that a source's topic does not exist yet; it is worth waiting for.
var ErrSourceMissing = errors.New("source topic does not exist")

// Ensure creates what is missing, checks what is there, and returns the topology. All faults are reported at once, each with the
// command that mends it.
func (p *Plan) Ensure(ctx context.Context, c *kafka.Cluster, o EnsureOptions) (*Topology, error) {
	sources, err := p.sources(ctx, c, o)
	if err != nil {
		return nil, err
	}
	needs := p.needs(sources, o.CreateSources)
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i], needs[i].at = n.name, o.at()
	}
	there, err := c.Admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	for _, n := range needs {
		if there.Has(n.name) {
			continue
		}
		if !n.create {
			return nil, fmt.Errorf("topic %s of a sink does not exist and the sink says create: false; make it with\n  processor topic create %s --partitions N%s", n.name, n.name, o.at())
		}
		if err := create(ctx, c, n, o.Replication); err != nil {
			return nil, err
		}
	}
	return p.check(ctx, c, needs, names, sources)
}

// sources finds the partitions of every source topic.
func (p *Plan) sources(ctx context.Context, c *kafka.Cluster, o EnsureOptions) (map[string]int32, error) {
	out := map[string]int32{}
	for _, st := range p.Stages {
		for _, in := range st.Inputs {
			if in.Internal() {
				continue
			}
			t, err := c.Topic(ctx, in.Topic, true)
			if errors.Is(err, kerr.UnknownTopicOrPartition) && o.CreateSources {
				if err = create(ctx, c, need{name: in.Topic, partitions: -1}, o.Replication); err == nil {
					t, err = c.Topic(ctx, in.Topic, true)
				}
			}
			if errors.Is(err, kerr.UnknownTopicOrPartition) {
				return nil, fmt.Errorf("topic %s of source %s.%s: %w; make it with\n  processor topic create %s --partitions 8%s", in.Topic, st.Name, in.SourceName, ErrSourceMissing, in.Topic, o.at())
			}
			if err != nil {
				return nil, err
			}
			out[in.Topic] = int32(len(t.Leaders))
		}
	}
	return out, nil
}

func create(ctx context.Context, c *kafka.Cluster, n need, replication int16) error {
	configs := map[string]*string{}
	for k, v := range n.configs {
		configs[k] = kadm.StringPtr(v)
	}
	partitions := n.partitions
	if partitions <= 0 {
		partitions = -1
	}
	_, err := c.Admin.CreateTopic(ctx, partitions, replication, configs, n.name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s (%d partitions): %w", n.name, partitions, err)
	}
	// The answer comes before every broker knows the topic.
	for {
		if _, err := c.Topic(ctx, n.name, true); err == nil {
			return nil
		} else if !errors.Is(err, kerr.UnknownTopicOrPartition) || ctx.Err() != nil {
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// check compares the topics with what the plan needs.
func (p *Plan) check(ctx context.Context, c *kafka.Cluster, needs []need, names []string, sources map[string]int32) (*Topology, error) {
	topics, err := c.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	configs, err := c.Admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	top := &Topology{Topics: map[string]TopicInfo{}}
	var faults []error
	for _, n := range needs {
		have := int32(len(topics[n.name].Leaders))
		if n.grow && have < n.partitions {
			if _, err := c.Admin.UpdatePartitions(ctx, int(n.partitions), n.name); err != nil {
				return nil, fmt.Errorf("grow topic %s from %d to %d partitions: %w", n.name, have, n.partitions, err)
			}
			have = n.partitions
		}
		rc, err := configs.On(n.name, nil)
		if err == nil {
			err = rc.Err
		}
		if err != nil {
			return nil, fmt.Errorf("describe topic %s: %w", n.name, err)
		}
		values := map[string]string{}
		for _, v := range rc.Configs {
			values[v.Key] = v.MaybeValue()
		}
		faults = append(faults, n.faults(have, values)...)
		info := TopicInfo{ID: topics[n.name].ID, Partitions: have, MaxBytes: 1000012, CopyLife: 12 * time.Hour}
		if ms, err := strconv.ParseInt(values["delete.retention.ms"], 10, 64); err == nil {
			info.CopyLife = time.Duration(min(ms, int64(maxCopyLife/time.Millisecond))) * time.Millisecond / 2
		}
		if m, err := strconv.ParseInt(values["max.message.bytes"], 10, 32); err == nil && m >= leastBatch {
			info.MaxBytes = int32(min(m, 16<<20))
		}
		top.Topics[n.name] = info
	}
	for _, st := range p.Stages {
		top.Partitions = append(top.Partitions, p.partitions(st, sources))
	}
	return top, errors.Join(faults...)
}

// maxCopyLife keeps a retention that means for ever within a Duration.
const maxCopyLife = 100 * 365 * 24 * time.Hour

// leastBatch is the smallest max.message.bytes that we write to, in bytes: the client library makes no smaller batches.
const leastBatch = 1024

// faults tells what is wrong with a topic that exists.
func (n need) faults(have int32, values map[string]string) []error {
	var out []error
	switch {
	case n.partitions <= 0 || have == n.partitions || n.atLeast && have > n.partitions:
	case have < n.partitions:
		out = append(out, fmt.Errorf("topic %s has %d partitions, the spec needs %d: if nothing has been written to it yet, mend it with\n  processor topic alter %s --partitions %d%s\notherwise keys would change their partition: state that number in the spec, or begin anew under another pipeline name", n.name, have, n.partitions, n.name, n.partitions, n.at))
	default:
		out = append(out, fmt.Errorf("topic %s has %d partitions, the spec needs %d: Kafka cannot take partitions away; write `partitions: %d` into the spec, or delete the topic if nothing needs it\n  processor topic delete %s%s", n.name, have, n.partitions, have, n.name, n.at))
	}
	if m, err := strconv.ParseInt(values["max.message.bytes"], 10, 64); err == nil && m < leastBatch && n.kind != "source" {
		out = append(out, fmt.Errorf("topic %s takes at most %d bytes (max.message.bytes); at least %d are needed: mend it with\n  processor topic alter %s --config max.message.bytes=1048588%s", n.name, m, leastBatch, n.name, n.at))
	}
	for _, key := range []string{"cleanup.policy", "retention.ms", "retention.bytes"} {
		want, ok := n.configs[key]
		got, known := values[key]
		if !ok || !known || got == want || n.kind == "sink" {
			continue
		}
		out = append(out, fmt.Errorf("topic %s has %s=%s, but a %s topic needs %s: mend it with\n  processor topic alter %s --config %s=%s%s", n.name, key, got, n.kind, want, n.name, key, want, n.at))
	}
	return out
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
