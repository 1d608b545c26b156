package spec

import (
	"slices"
	"strings"
)

// graph checks how computations and streams hang together.
func (v *validator) graph() {
	if len(v.s.Computations) == 0 {
		v.fault(path{"computations"}, "a pipeline needs at least one computation")
		return
	}
	v.writers()
	v.topics()
	if !v.cycles() {
		v.fusion()
	}
	v.copartitioned()
	v.jobsAndPartitions()
}

// writers checks that each stream has exactly one writer and some reader.
func (v *validator) writers() {
	for _, s := range v.s.Streams {
		writers := v.producers[s.Name]
		for i, w := range writers {
			if i > 0 && (w.computation != writers[0].computation || w.source != writers[0].source) {
				v.fault(w.at, "stream %s is already written by %s; each stream has one writer", s.Name, writers[0].describe())
			}
		}
		readers := v.readers[s.Name]
		switch {
		case len(writers) == 0 && len(readers) > 0:
			v.fault(path{"streams", s.Name}, "nothing writes stream %s, read by %s", s.Name, strings.Join(readers, " and "))
		case len(writers) == 0:
			v.warn(path{"streams", s.Name}, "stream %s is not used", s.Name)
		case len(readers) == 0 && !v.sunk(s.Name) && writers[0].source == "" && !writers[0].deadLetter:
			v.warn(path{"streams", s.Name}, "nothing reads stream %s, which %s writes", s.Name, writers[0].computation)
		case len(readers) > 0 && writers[0].source != "":
			for _, r := range readers {
				i := slices.Index(v.s.Computations.Get(r).InputStreams, s.Name)
				v.fault(to(r, "input_stream_ids", i), "stream %s comes from %s and is read there only; give %s a source of its own or an output stream", s.Name, writers[0].describe(), r)
			}
		}
	}
}

func (p producer) describe() string {
	if p.source != "" {
		return "source " + p.source + " of " + p.computation
	}
	return p.computation
}

// sunk reports whether a sink takes the stream.
func (v *validator) sunk(stream string) bool {
	for _, c := range v.s.Computations {
		for _, s := range c.Value.Sinks {
			if slices.Contains(s.Value.InputStreams, stream) {
				return true
			}
		}
	}
	return false
}

// upstream lists the computations whose outputs c reads.
func (v *validator) upstream(c *Computation) []string {
	var names []string
	for _, in := range c.InputStreams {
		for _, p := range v.producers[in] {
			if p.source == "" && !slices.Contains(names, p.computation) {
				names = append(names, p.computation)
			}
		}
	}
	return names
}

// cycles reports each loop of computations once, and whether there is any.
func (v *validator) cycles() bool {
	const unseen, open, done = 0, 1, 2
	state := map[string]int{}
	var trail []string
	found := false
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		trail = append(trail, name)
		for _, up := range v.upstream(v.s.Computations.Get(name)) {
			switch state[up] {
			case unseen:
				visit(up)
			case open:
				found = true
				loop := slices.Clone(trail[slices.Index(trail, up):])
				slices.Reverse(loop)
				v.fault(to(name, "input_stream_ids"), "computations must not form a cycle: %s", strings.Join(append(loop, loop[0]), " -> "))
			}
		}
		trail = trail[:len(trail)-1]
		state[name] = done
	}
	for _, c := range v.s.Computations {
		if state[c.Name] == unseen {
			visit(c.Name)
		}
	}
	return found
}

// fused reports whether a computation runs inside the stage that writes its input.
func fused(c *Computation) bool { return c.Type == SwiftMap && len(c.GroupBy) == 0 }

// heads are the stages that a computation runs in: itself, unless it is fused. The graph must have no cycles.
func (v *validator) heads(name string) []string {
	c := v.s.Computations.Get(name)
	if !fused(c) {
		return []string{name}
	}
	if known, ok := v.headsOf[name]; ok {
		return known
	}
	var heads []string
	for _, up := range v.upstream(c) {
		for _, h := range v.heads(up) {
			if !slices.Contains(heads, h) {
				heads = append(heads, h)
			}
		}
	}
	v.headsOf[name] = heads
	return heads
}

// fusion checks where each swift_map runs.
func (v *validator) fusion() {
	for _, c := range v.s.Computations {
		if c.Value.Type != SwiftMap {
			continue
		}
		if fused(&c.Value) {
			if heads := v.heads(c.Name); len(heads) > 1 {
				v.fault(to(c.Name, "input_stream_ids"), "a swift_map without group_by_schema runs in the stage that writes its input, but its inputs come from %s; give it group_by_schema", strings.Join(heads, " and "))
			}
			continue
		}
		for _, up := range v.upstream(&c.Value) {
			for _, h := range v.heads(up) {
				if t := v.s.Computations.Get(h).Type; t == SwiftOrderedSource || t == SwiftMap {
					v.warn(to(c.Name, "group_by_schema"), "this swift_map regroups behind the swift stage %s, so it runs as a transform: its outputs appear with the epoch", h)
				}
			}
		}
	}
}

// copartitioned checks that the internal inputs of one stage have the same number of partitions.
func (v *validator) copartitioned() {
	for _, c := range v.s.Computations {
		if fused(&c.Value) {
			continue
		}
		var first *Stream
		for i, in := range c.Value.InputStreams {
			s := v.s.Streams.Get(in)
			switch {
			case s == nil || v.isSource(in):
			case first == nil:
				first = s
			case s.Partitions != first.Partitions:
				v.fault(to(c.Name, "input_stream_ids", i), "stream %s has %d partitions and the first input has %d; inputs of one stage must agree", in, s.Partitions, first.Partitions)
			}
		}
	}
}
