package lease_test

import (
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/control"
)

// The protocol of leases and commands holds in every interleaving of two workers and a command line that may die, and each of
// its rules is needed: without it the search finds the shortest way in which the law breaks.
func TestLeaseHoldsInEveryInterleavingAndEveryRuleIsNeeded(t *testing.T) {
	t.Parallel()
	const stop, start, apply = control.Stop, control.Start, control.Apply
	for _, c := range []struct {
		name                             string
		jobs0, jobs1                     int32
		kinds                            []control.CommandKind
		rules                            rules
		inits, commits, unknowns, deaths uint8
		broken                           string // the law that must break
	}{
		{"one job, unknown outcomes", 1, 1, nil, rules{}, 4, 2, 2, 0, ""},
		{"one job, memory kept after an unknown outcome", 1, 1, nil, rules{keepMemory: true}, 4, 2, 1, 0, "I1/I4"},
		{"one job, offsets read before fencing", 1, 1, nil, rules{offsetsFirst: true}, 4, 2, 0, 0, "I1/I4"},
		{"apply 1 to 2 jobs", 1, 2, []control.CommandKind{apply}, rules{}, 4, 2, 0, 0, ""},
		{"apply 1 to 2 jobs dies, start finishes it", 1, 2, []control.CommandKind{apply, start}, rules{}, 4, 1, 0, 1, ""},
		{"apply 1 to 2 jobs dies, start does not finish it", 1, 2, []control.CommandKind{apply, start}, rules{ignoreFencing: true}, 5, 2, 0, 1, "I11"},
		{"apply 2 to 1 jobs dies, start finishes it", 2, 1, []control.CommandKind{apply, start}, rules{}, 3, 1, 0, 1, ""},
		{"apply 2 to 1 jobs, only new ids are fenced", 2, 1, []control.CommandKind{apply}, rules{fenceNewOnly: true}, 5, 2, 0, 0, "I"},
		{"stop dies, start finishes it", 1, 1, []control.CommandKind{stop, start}, rules{}, 4, 1, 0, 1, ""},
		{"stop, nobody looks at generations", 1, 1, []control.CommandKind{stop}, rules{ignoreGeneration: true}, 5, 2, 0, 0, "I11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSearch(c.jobs0, c.jobs1, c.rules, c.kinds...)
			n, broken, trace := s.run(s.start(c.inits, c.commits, c.unknowns, c.deaths))
			t.Logf("%d worlds; %s\n\t%s", n, broken, strings.Join(trace, "\n\t"))
			if (broken == "") != (c.broken == "") || !strings.HasPrefix(broken, c.broken) {
				t.Errorf("broken law %q, want %q", broken, c.broken)
			}
		})
	}
}
