package spec

import (
	"slices"
	"strings"
)

// longestPipeline leaves room in topic names for stages and streams.
const longestPipeline = 100

// names checks every name that becomes part of a topic's, and that no two topics would collide.
func (v *validator) names() {
	p := v.s.Pipeline
	switch {
	case p == "":
		v.fault(path{"pipeline"}, "pipeline must not be empty")
	case !consistsOf(p, pipelineRunes):
		v.fault(path{"pipeline"}, "pipeline %q may have only a-z, 0-9 and -", p)
	case len(p) > longestPipeline:
		v.fault(path{"pipeline"}, "pipeline has %d characters; the most is %d", len(p), longestPipeline)
	}
	for _, s := range v.s.Streams {
		v.name("stream", s.Name, path{"streams", s.Name})
	}
	for _, c := range v.s.Computations {
		v.name("computation", c.Name, to(c.Name))
		for _, s := range c.Value.Sources {
			v.name("source", s.Name, to(c.Name, "sources", s.Name))
		}
		for _, s := range c.Value.Sinks {
			v.name("sink", s.Name, to(c.Name, "sinks", s.Name))
		}
		for _, m := range c.Value.Managers {
			v.name("state manager", m.Name, to(c.Name, "external_state_managers", m.Name))
		}
		for _, j := range c.Value.Joiners {
			v.name("state joiner", j.Name, to(c.Name, "external_state_joiners", j.Name))
		}
	}
}

func (v *validator) name(kind, name string, at path) {
	switch {
	case !consistsOf(name, nameRunes):
		v.fault(at, "%s name %q may have only a-z, 0-9, _ and -", kind, name)
	case slices.Contains(reservedNames, name):
		v.fault(at, "%s name %q is reserved; reserved are %s and names of digits only", kind, name, strings.Join(reservedNames, ", "))
	case consistsOf(name, digits):
		v.fault(at, "%s name %q has digits only, which is reserved; add a letter", kind, name)
	}
}

// topics checks the names of all topics that the pipeline makes. Kafka takes . and _ as equal, so names that differ only
// there collide.
func (v *validator) topics() {
	p := v.s.Pipeline
	owner := map[string]string{}
	claim := func(topic, what string, at path) {
		if len(topic) > longestTopic {
			v.fault(at, "the topic of %s would have %d characters; the most is %d", what, len(topic), longestTopic)
		}
		key := strings.ReplaceAll(topic, ".", "_")
		if first, taken := owner[key]; taken {
			v.fault(at, "the topic %s of %s collides with that of %s, since Kafka takes . and _ as equal; rename one", topic, what, first)
			return
		}
		owner[key] = what
	}
	claim(JobsTopic(p), "the job logs", nil)
	claim(ControlTopic(p), "control", nil)
	for _, s := range v.s.Streams {
		if v.isSource(s.Name) || slices.Contains(reservedNames, s.Name) {
			continue
		}
		at := path{"streams", s.Name}
		claim(StreamTopic(p, s.Name, ""), "stream "+s.Name, at)
		if stages := v.readingStages(s.Name); len(stages) > 1 {
			for _, stage := range stages {
				claim(StreamTopic(p, s.Name, stage), "stream "+s.Name+" for "+stage, at)
			}
		}
	}
	for _, c := range v.s.Computations {
		claim(StateTopic(p, c.Name), "the state of "+c.Name, to(c.Name))
		for _, s := range c.Value.Sinks {
			claim(OutboxTopic(p, c.Name, s.Name), "the outbox of "+c.Name+"."+s.Name, to(c.Name, "sinks", s.Name))
		}
	}
	v.outsideTopics(owner)
}

// outsideTopics checks that sources and sinks do not use the pipeline's own topics.
func (v *validator) outsideTopics(owner map[string]string) {
	check := func(topic string, at path) {
		if what, own := owner[strings.ReplaceAll(topic, ".", "_")]; own {
			v.fault(at, "topic %q is the pipeline's own topic of %s", topic, what)
		}
	}
	for _, c := range v.s.Computations {
		for _, s := range c.Value.Sources {
			if s.Value.Kafka != nil {
				check(s.Value.Kafka.Topic, to(c.Name, "sources", s.Name, "parameters", "topic"))
			}
		}
		for _, s := range c.Value.Sinks {
			if s.Value.Kafka != nil {
				check(s.Value.Kafka.Topic, to(c.Name, "sinks", s.Name, "parameters", "topic"))
			}
		}
	}
}

// kafkaTopic checks the name of a topic outside the pipeline.
func (v *validator) kafkaTopic(topic string, at path) {
	switch {
	case topic == "" || topic == "." || topic == ".." || !consistsOf(topic, kafkaNameRunes):
		v.fault(at, "topic %q may have only letters, digits, ., _ and -", topic)
	case len(topic) > longestTopic:
		v.fault(at, "the topic has %d characters; the most is %d", len(topic), longestTopic)
	}
}

func (v *validator) isSource(stream string) bool {
	return slices.ContainsFunc(v.producers[stream], func(p producer) bool { return p.source != "" })
}

// readingStages are the computations that read a stream through its topic: all but those fused behind its writer.
func (v *validator) readingStages(stream string) []string {
	var stages []string
	for _, name := range v.readers[stream] {
		if c := v.s.Computations.Get(name); c.Type != SwiftMap || len(c.GroupBy) > 0 {
			stages = append(stages, name)
		}
	}
	return stages
}
