package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ExampleSpec reads a spec of examples/specs and replaces texts in it, given in pairs of old and new. Each old text must be
// there exactly once, so that a changed example does not silently test something else.
func ExampleSpec(root, name string, pairs ...string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "examples", "specs", name+".yaml"))
	if err != nil {
		return "", fmt.Errorf("example spec: %w", err)
	}
	return substitute(string(text), pairs...)
}

func substitute(text string, pairs ...string) (string, error) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if n := strings.Count(text, pairs[i]); n != 1 {
			return "", fmt.Errorf("spec has %q %d times, not once", pairs[i], n)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text, nil
}
