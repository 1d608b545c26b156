package spec

import "time"

// DefaultPartitions is the number of partitions of an internal stream that does not say its own.
const DefaultPartitions = 16

// SetDefaults parks and retries failing messages.
func (o *OnError) SetDefaults() {
	*o = OnError{Policy: "fail", MaxAttempts: 1, Pause: Duration(100 * time.Millisecond)}
}

// fillDefaults fills in the defaults that depend on more than one field; all others stand in the `default` tags.
//
// The partitions of a source stream are its topic's, so only internal streams get a number.
func (s *Spec) fillDefaults() {
	source := map[string]bool{}
	for _, c := range s.Computations {
		for _, src := range c.Value.Sources {
			source[src.Value.OutputStream] = true
		}
	}
	for i := range s.Streams {
		if st := &s.Streams[i]; st.Value.Partitions == 0 && !source[st.Name] {
			st.Value.Partitions = DefaultPartitions
		}
	}
}
