package spec

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// path leads from the document's root to a value: names (string) and indices (int).
type path []any

func (p path) String() string {
	out := ""
	for _, step := range p {
		switch step := step.(type) {
		case int:
			out += fmt.Sprintf("[%d]", step)
		case string:
			out = join(out, step)
		}
	}
	return out
}

// locate returns the node whose position stands for the value at p: a scalar itself, a member of a list itself, the key of a
// mapping or list; where p does not exist, what is nearest above it.
func (s *Spec) locate(p path) *yaml.Node {
	if len(s.Document.Content) == 0 {
		return nil
	}
	at := s.Document.Content[0]
	shown := at
	for _, step := range p {
		var key, value *yaml.Node
		switch step := step.(type) {
		case string:
			key, value = member(at, step)
		case int:
			if at.Kind == yaml.SequenceNode && step < len(at.Content) {
				value = at.Content[step]
				key = value
			}
		}
		if value == nil {
			return shown
		}
		at, shown = value, key
		if value.Kind == yaml.ScalarNode && !isNull(value) {
			shown = value
		}
	}
	return shown
}
