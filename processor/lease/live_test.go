package lease_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/lease"
)

// living is one job at three workers. W1 is assigned it; W2 lost it but is in the middle of acquiring; W3 gets it when W1 leaves
// the group. Somebody, such as a stop that dies, may fence the id.
type living struct {
	epoch    uint8
	fences   uint8
	assigned uint8 // worker
	told     bool  // W2 was told that the job is not its own
	loaded   bool  // W1 has looked at the spec of control, which it cannot run
	workers  [3]livingWorker
}

type livingWorker struct {
	machine uint16
	token   uint8
}

// liveness searches for worlds in which nothing happens any more and nobody holds the job.
type liveness struct {
	*search
	newer       bool // control holds a generation that W1's binary cannot run
	fencedFinal bool // rule taken away: being fenced is final
	stay        bool // rule taken away: a worker that cannot run the spec stays in the group
}

func (l *liveness) control() uint64 {
	if l.newer {
		return 2
	}
	return 1
}

func (l *liveness) start(fences uint8) living {
	w := living{fences: fences, assigned: 1}
	for i := range w.workers {
		generation := uint64(1)
		if i > 0 {
			generation = l.control()
		}
		w.workers[i].machine = l.machineID(machineEntry{machine: lease.New(0, generation)})
	}
	l.event(&w, 0, lease.Event{Kind: lease.Assigned})
	l.event(&w, 1, lease.Event{Kind: lease.Assigned})
	l.event(&w, 1, lease.Event{Kind: lease.ControlRead, Generation: l.control(), Running: true})
	return w
}

func (l *liveness) event(w *living, i int, e lease.Event) {
	h := &w.workers[i]
	entry := l.machines[h.machine]
	a := entry.machine.Step(e)
	if a.Kind == lease.DropTerm {
		h.token = 0
		a = entry.machine.Step(lease.Event{Kind: lease.Released})
	}
	if a.Kind != lease.None {
		entry.action = a
	}
	h.machine = l.machineID(entry)
}

type livingStep struct {
	world living
	what  string
}

func (l *liveness) steps(w living) (next []livingStep) {
	for i := range w.workers {
		if n, what, ok := l.act(w, i); ok {
			next = append(next, livingStep{n, fmt.Sprintf("W%d %s", i+1, what)})
		}
	}
	if !w.told {
		n := w
		n.told = true
		l.event(&n, 1, lease.Event{Kind: lease.Revoked})
		next = append(next, livingStep{n, "W2 learns that the job is not its own"})
	}
	if w.fences > 0 {
		n := w
		n.fences, n.epoch = n.fences-1, n.epoch+1
		next = append(next, livingStep{n, "somebody fences"})
	}
	if l.newer && !w.loaded && !l.stay {
		n := w
		n.loaded = true
		l.event(&n, 0, lease.Event{Kind: lease.CannotRun, Reason: "no such function"})
		next = append(next, livingStep{n, "W1 cannot run what control holds"})
	}
	return next
}

// act carries out what the machine of one worker waits for.
func (l *liveness) act(w living, i int) (living, string, bool) {
	h := &w.workers[i]
	a := l.machines[h.machine].action
	e, done := lease.Event{}, a.Kind.String()
	fenced := h.token != w.epoch
	switch a.Kind {
	case lease.ReadControl:
		e = lease.Event{Kind: lease.ControlRead, Generation: l.control(), Running: true}
	case lease.InitProducerID:
		w.epoch++
		h.token = w.epoch
		e.Kind = lease.Initialized
	case lease.ReadLog:
		e = lease.Event{Kind: lease.LogRead, Generation: l.control(), Running: true}
	case lease.CommitAcquired, lease.Run:
		switch {
		case fenced:
			e, done = lease.Event{Kind: lease.Failed, Verdict: lease.Fenced}, done+": fenced"
		case a.Kind == lease.Run:
			return w, "", false
		default:
			e.Kind = lease.AcquiredCommitted
		}
	case lease.Restore:
		e.Kind = lease.Restored
	case lease.AwaitHeartbeat:
		if int(w.assigned) != i+1 || l.fencedFinal {
			return w, "", false
		}
		l.event(&w, i, lease.Event{Kind: lease.PauseOver})
		e.Kind = lease.Heartbeat
	case lease.LeaveGroup:
		if int(w.assigned) != i+1 {
			return w, "", false
		}
		w.assigned = 3
		l.event(&w, 2, lease.Event{Kind: lease.Assigned})
		return w, done + "; the group assigns the job to W3", true
	default:
		return w, "", false
	}
	l.event(&w, i, e)
	return w, done, true
}

func (l *liveness) held(w living) bool {
	for i := range w.workers {
		if l.machines[w.workers[i].machine].action.Kind == lease.Run && w.workers[i].token == w.epoch {
			return true
		}
	}
	return false
}

// run returns the number of worlds and the shortest way to a job that stays without a holder.
func (l *liveness) run(start living) (int, []string) {
	type origin struct {
		before int
		what   string
	}
	seen, queue, origins := map[living]bool{start: true}, []living{start}, []origin{{before: -1}}
	for at := 0; at < len(queue); at++ {
		next := l.steps(queue[at])
		if len(next) == 0 && !l.held(queue[at]) {
			var trace []string
			for i := at; origins[i].before >= 0; i = origins[i].before {
				trace = append([]string{origins[i].what}, trace...)
			}
			return len(queue), trace
		}
		for _, n := range next {
			if !seen[n.world] {
				seen[n.world] = true
				queue, origins = append(queue, n.world), append(origins, origin{at, n.what})
			}
		}
	}
	return len(queue), nil
}

// I14: when faults stop, the job has a holder; and it is the rules on being fenced and on leaving that see to it.
func TestEveryJobEndsWithAHolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                     string
		newer, fencedFinal, stay bool
		stuck                    bool
	}{
		{"retry while assigned", false, false, false, false},
		{"fenced is final", false, true, false, true},
		{"a worker that cannot run the spec leaves", true, false, false, false},
		{"a worker that cannot run the spec stays", true, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &liveness{search: newSearch(1, 1, rules{}), newer: c.newer, fencedFinal: c.fencedFinal, stay: c.stay}
			n, trace := l.run(l.start(2))
			t.Logf("%d worlds\n\t%s", n, strings.Join(trace, "\n\t"))
			if (trace != nil) != c.stuck {
				t.Errorf("stuck %v, want %v", trace != nil, c.stuck)
			}
		})
	}
}
