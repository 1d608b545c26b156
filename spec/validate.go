package spec

import "slices"

// validator collects the faults of one spec.
type validator struct {
	s         *Spec
	faults    []Fault
	producers map[string][]producer // of each stream
	readers   map[string][]string   // computations that read each stream, sources not counted
	headsOf   map[string][]string   // of fused computations, as they become known
}

// producer is what writes a stream: a computation, or one of its sources.
type producer struct {
	computation string
	source      string // "" for the computation itself
	deadLetter  bool
	at          path
}

// Validate returns all faults that can be found from the spec alone, ordered by position, and never one at a place where
// Parse has found one. It has no side effects and does not look at functions' parameters.
func Validate(s *Spec) []Fault {
	if s == nil || len(s.Document.Content) == 0 {
		return nil
	}
	v := &validator{s: s, producers: map[string][]producer{}, readers: map[string][]string{}, headsOf: map[string][]string{}}
	v.names()
	v.bounds()
	v.connection()
	v.streams()
	v.collect()
	for _, c := range s.Computations {
		v.computation(c.Name, &c.Value)
	}
	v.graph()
	v.stateTables()
	v.dynamic()
	v.refuseUnavailable()
	faults := slices.DeleteFunc(v.faults, func(f Fault) bool {
		return slices.ContainsFunc(s.broken, func(b Fault) bool {
			return b.Path == f.Path || b.Line == f.Line && b.Column == f.Column
		})
	})
	return s.Redact(Sort(faults))
}

func (v *validator) fault(at path, format string, args ...any) {
	v.faults = append(v.faults, faultAt(v.s.File, v.s.locate(at), at.String(), format, args...))
}

func (v *validator) warn(at path, format string, args ...any) {
	v.fault(at, format, args...)
	v.faults[len(v.faults)-1].Warning = true
}

// to is a path into a computation.
func to(computation string, steps ...any) path {
	return append(path{"computations", computation}, steps...)
}

// streamNames and computationNames are what a misspelt name is compared with.
func (v *validator) streamNames() []string {
	var names []string
	for _, s := range v.s.Streams {
		names = append(names, s.Name)
	}
	return names
}

func (v *validator) computationNames() []string {
	var names []string
	for _, c := range v.s.Computations {
		names = append(names, c.Name)
	}
	return names
}

// stream returns a declared stream; an undeclared one is a fault at p.
func (v *validator) stream(name string, p path) *Stream {
	st := v.s.Streams.Get(name)
	if st == nil && name != "" {
		v.fault(p, "unknown stream %q%s", name, didYouMean(name, v.streamNames()))
	}
	return st
}

// collect notes who writes and who reads each stream.
func (v *validator) collect() {
	for _, c := range v.s.Computations {
		for _, src := range c.Value.Sources {
			v.produces(src.Value.OutputStream, producer{computation: c.Name, source: src.Name, at: to(c.Name, "sources", src.Name, "output_stream_id")})
		}
		for i, out := range c.Value.OutputStreams {
			v.produces(out, producer{computation: c.Name, at: to(c.Name, "output_stream_ids", i)})
		}
		if dead := c.Value.OnError.DeadLetter; dead != "" && !slices.Contains(c.Value.OutputStreams, dead) {
			v.produces(dead, producer{computation: c.Name, deadLetter: true, at: to(c.Name, "on_error", "dead_letter")})
		}
		for _, in := range c.Value.InputStreams {
			if !slices.Contains(v.readers[in], c.Name) {
				v.readers[in] = append(v.readers[in], c.Name)
			}
		}
	}
}

func (v *validator) produces(stream string, p producer) {
	if stream != "" {
		v.producers[stream] = append(v.producers[stream], p)
	}
}
