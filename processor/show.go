package processor

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/spec"
)

// StateShower turns a state's payload into something that encoding/json can write.
type StateShower func(name string, schema uint64, payload []byte) (any, error)

// NewStateShower returns the shower of a changelog topic, from the spec that control holds for its pipeline. It is nil for a topic that
// is no changelog of a known pipeline.
func NewStateShower(ctx context.Context, c *kafka.Cluster, topic string) (StateShower, error) {
	pipeline, _, _ := strings.Cut(topic, ".")
	s, found, err := PeekControl(ctx, c, pipeline)
	if err != nil || !found {
		return nil, err
	}
	parsed, faults := spec.Parse("control", []byte(s.Spec))
	if parsed == nil || spec.Refused(faults) {
		return nil, fmt.Errorf("the spec that control holds cannot be read: %v", faults)
	}
	plan, _ := NewPlan(parsed)
	for _, st := range plan.Stages {
		if st.StateTopic == topic {
			return st.shower()
		}
	}
	return nil, nil
}

func (st *Stage) shower() (StateShower, error) {
	codecs := map[string]functions.Codec{}
	for _, n := range st.Nodes {
		f, faults := functions.Build(n.Config)
		if err := firstFault(faults); err != nil {
			return nil, err
		}
		for _, d := range f.States() {
			codecs[d.Name] = d.Codec
		}
	}
	return func(name string, schema uint64, payload []byte) (any, error) {
		c := codecs[name]
		s, ok := c.(functions.Shower)
		if !ok || c.Fingerprint() != schema {
			return hex.EncodeToString(payload), nil
		}
		obj, err := c.Decode(payload)
		if err != nil {
			return nil, err
		}
		return s.Show(obj), nil
	}, nil
}
