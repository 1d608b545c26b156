package dedup

import (
	"fmt"
	"strings"
	"testing"
)

func (s *swift) moves(w world) (next []move) {
	next = s.acquire(next, w)
	for a := uint8(1); a <= w.begun; a++ {
		next = s.send(next, w, a)
		at := w.attempts[a-1]
		limit := at.next
		if at.failed != 0 {
			limit = at.failed
		}
		if w.holder == a && limit > w.committed {
			n := w
			n.committed = limit
			next = append(next, move{n, fmt.Sprintf("A%d commits offset %d", a, limit)})
		}
	}
	return next
}

// acquire begins an attempt at the committed offset.
func (s *swift) acquire(next []move, w world) []move {
	if w.begun == s.attempts {
		return next
	}
	a := w.begun + 1
	n := w
	n.begun, n.holder = a, a
	n.attempts[a-1] = attempt{start: w.committed, next: w.committed}
	if s.reset && a == 3 {
		n.attempts[a-1] = attempt{start: 1, next: 1}
		n.committed, n.written, n.log, n.reset, n.changed = 1, 0, [6]record{}, true, true
		return append(next, move{n, "stop; reset to 1, state and topic deleted; A3 starts at 1"})
	}
	if s.target != nil && a == 2 {
		if s.drained {
			out, _ := s.fold(&w)
			if len(out) != int(w.committed)-1 {
				return next
			}
		}
		n.changed, n.changedAt = true, w.written
	}
	return append(next, move{n, fmt.Sprintf("A%d acquires, starts at %d", a, w.committed)})
}

// send is the next output of an attempt: written, lost, or written with an error for an answer. After a failure the records that
// are on their way still arrive, for a while.
func (s *swift) send(next []move, w world, a uint8) []move {
	at := &w.attempts[a-1]
	id := at.next
	if s.repeat && at.failed != 0 && int(w.written) < len(w.log) {
		n := w
		r := record{target: 0, id: at.failed, prev: at.failed - 1, attempt: a, start: at.failed == at.start}
		n.log[n.written], n.written = r, n.written+1
		n.attempts[a-1].failed = 0
		next = append(next, move{n, fmt.Sprintf("A%d repeats %d in place", a, at.failed)})
	}
	if id > s.inputs || at.failed != 0 && id >= at.failed+2 {
		return next
	}
	if !s.makes(a, id) {
		at.next++
		return append(next, move{w, fmt.Sprintf("A%d finds no input %d", a, id)})
	}
	r := s.link(&w, a)
	at.next++
	written := w
	if int(w.written) < len(w.log) {
		written.log[w.written], written.written = r, w.written+1
		next = append(next, move{written, fmt.Sprintf("A%d writes %d, start %v, previous %d, to %d", a, id, r.start, r.prev, r.target)})
	}
	if a == s.attempts && !s.repeat {
		return next // the last attempt has no faults
	}
	if at.failed == 0 {
		w.attempts[a-1].failed, written.attempts[a-1].failed = id, id
	}
	if int(w.written) < len(w.log) {
		next = append(next, move{written, fmt.Sprintf("A%d's batch with %d is written, its answer is an error", a, id)})
	}
	w.attempts[a-1].lost |= 1 << id
	return append(next, move{w, fmt.Sprintf("A%d's batch with %d is lost", a, id)})
}

func (s *swift) run() (int, string, []string) {
	type origin struct {
		before int
		what   string
	}
	start := world{committed: 1}
	seen, queue, origins := map[world]struct{}{start: {}}, []world{start}, []origin{{before: -1}}
	for at := 0; at < len(queue); at++ {
		if broken := s.broken(&queue[at]); broken != "" {
			var trace []string
			for i := at; origins[i].before >= 0; i = origins[i].before {
				trace = append([]string{origins[i].what}, trace...)
			}
			return len(queue), broken, trace
		}
		for _, n := range s.moves(queue[at]) {
			if _, ok := seen[n.world]; !ok {
				seen[n.world] = struct{}{}
				queue, origins = append(queue, n.world), append(origins, origin{at, n.what})
			}
		}
	}
	return len(queue), "", nil
}

// Frontier and Chain keep every message once, whatever fails and whatever zombies write; and each rule is needed for it.
func TestSwiftHoldsInEveryInterleavingAndEveryRuleIsNeeded(t *testing.T) {
	t.Parallel()
	code := func(a, _ uint8) uint8 { return min(a-1, 1) }
	for _, c := range []struct {
		name   string
		swift  swift
		broken string
	}{
		{"the rules, 3 inputs, 2 attempts", swift{inputs: 3, attempts: 2}, ""},
		{"the rules, 2 inputs, 3 attempts", swift{inputs: 2, attempts: 3}, ""},
		{"predecessors not looked at", swift{inputs: 2, attempts: 2, noLink: true}, "I6"},
		{"a fresh receiver accepts anything", swift{inputs: 2, attempts: 2, freshAny: true}, "I6"},
		{"the predecessor is the last acknowledged", swift{inputs: 2, attempts: 2, ackedLink: true}, "I6"},
		{"a failed record is repeated in place", swift{inputs: 3, attempts: 2, repeat: true}, "I6"},
		{"filter before the frontier", swift{inputs: 3, attempts: 2, filter: 2, filterFirst: true}, "I6"},
		{"filter behind the frontier", swift{inputs: 3, attempts: 2, filter: 2}, ""},
		{"an input is gone at the replay", swift{inputs: 3, attempts: 2, absent: 2}, ""},
		{"an input is gone at the replay, predecessor must equal the frontier", swift{inputs: 3, attempts: 2, absent: 2, equal: true}, "I6"},
		{"code changed without a drained stop", swift{inputs: 2, attempts: 2, target: code}, "I4"},
		{"code changed after a drained stop, same line", swift{inputs: 2, attempts: 2, target: code, drained: true}, "I4"},
		{"code changed after a drained stop, new line", swift{inputs: 3, attempts: 2, target: code, drained: true, line: true}, ""},
		{"reset, same incarnation", swift{inputs: 2, attempts: 3, reset: true}, "I6"},
		{"reset, new incarnation", swift{inputs: 2, attempts: 3, reset: true, line: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, broken, trace := c.swift.run()
			t.Logf("%d worlds; %s\n\t%s", n, broken, strings.Join(trace, "\n\t"))
			if (broken == "") != (c.broken == "") || !strings.HasPrefix(broken, c.broken) {
				t.Errorf("broken law %q, want %q", broken, c.broken)
			}
		})
	}
}
