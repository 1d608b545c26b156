package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/lease"
)

const jobs = 2

// world is control, the job logs, one worker that takes jobs whenever control lets it, and commands.
type world struct {
	state        uint8 // of control; 0: empty
	controlEpoch uint8
	epoch        [jobs]uint8 // producer epoch of each job's id
	log          [jobs]uint8 // newest generation in each job's log
	holder       [jobs]holder
	commands     [3]running
	deaths       uint8
	unknowns     uint8
	takes        uint8
	fences       uint8 // how often an id may still be taken by a command
}

// holder is the worker that last took a job: it can commit while token is the job's epoch.
type holder struct{ token, generation uint8 }

type running struct {
	command  uint16 // 0: not begun
	ended    bool
	dead     bool
	token    uint8
	controls uint8
	said     control.ActionKind
}

type entry struct {
	command control.Command
	action  control.Action
}

// rules taken away, one at a time.
type rules struct {
	noCompareAndSet bool // control is written whoever has fenced it since
	ignoreFencing   bool // an unfinished fencing of another command is taken for a finished one
	ignoreLog       bool // a newer generation in a job's log is not looked at
}

type search struct {
	kinds    []control.CommandKind
	after    []int // command i begins when command after[i] has ended; -1: at once
	rules    rules
	states   []control.State
	stateIDs map[string]uint8
	entries  []entry
	ids      map[string]uint16
}

func (s *search) state(c control.State) uint8 {
	key := fmt.Sprintf("%+v", c)
	id, ok := s.stateIDs[key]
	if !ok {
		id = uint8(len(s.states))
		s.stateIDs[key], s.states = id, append(s.states, c)
	}
	return id
}

func (s *search) entry(e entry) uint16 {
	key := fmt.Sprintf("%+v", e)
	id, ok := s.ids[key]
	if !ok {
		id = uint16(len(s.entries))
		s.ids[key], s.entries = id, append(s.entries, e)
	}
	return id
}

type step struct {
	world  world
	what   string
	broken string
}

func (s *search) steps(w world) (next []step) {
	for i := range s.kinds {
		next = s.command(next, w, i)
	}
	c := s.states[w.state]
	for k := range jobs {
		// The worker knows what control says; the lease machine's own rules are checked in its package.
		if g := uint8(c.Generation); c.Run == control.Running && k < int(c.Jobs) && w.takes > 0 && w.log[k] <= g && w.holder[k] != (holder{w.epoch[k], g}) {
			n := w
			n.takes--
			n.epoch[k]++
			n.log[k], n.holder[k] = g, holder{n.epoch[k], g}
			next = append(next, step{world: n, what: fmt.Sprintf("a worker of generation %d takes job %d", g, k)})
		}
	}
	return next
}

func (s *search) command(next []step, w world, i int) []step {
	r := w.commands[i]
	name := fmt.Sprintf("command %d", i+1)
	switch {
	case r.ended || r.dead:
		return next
	case r.command == 0:
		if a := s.after[i]; a >= 0 && !w.commands[a].ended && !w.commands[a].dead {
			return next
		}
		p := control.Params{By: name, State: control.State{Jobs: jobs, Incarnation: fmt.Sprintf("%016x", i)}}
		e := entry{command: control.NewCommand(s.kinds[i], p)}
		e.action = e.command.Step(control.Event{Kind: control.Begin})
		w.commands[i].command = s.entry(e)
		return append(next, step{world: w, what: name + " begins"})
	}
	if w.deaths > 0 {
		n := w
		n.deaths--
		n.commands[i] = running{command: r.command, dead: true}
		next = append(next, step{world: n, what: name + " dies"})
	}
	e := s.entries[r.command]
	for _, o := range s.carryOut(w, i, e.action) {
		if o.event.Kind == 0 {
			o.world.commands[i] = running{command: r.command, ended: true, said: e.action.Kind}
		} else {
			c := e
			c.action = c.command.Step(o.event)
			o.world.commands[i].command = s.entry(c)
		}
		next = append(next, step{o.world, name + " " + o.what, o.broken})
	}
	return next
}

type outcome struct {
	world        world
	event        control.Event
	what, broken string
}

func (s *search) carryOut(w world, i int, a control.Action) []outcome {
	r, k := &w.commands[i], a.Job
	failed := func(v lease.Verdict) control.Event { return control.Event{Kind: control.Failed, Verdict: v} }
	switch a.Kind {
	case control.FenceControl:
		if w.fences == 0 {
			return nil
		}
		w.fences--
		w.controlEpoch++
		r.controls = w.controlEpoch
		return []outcome{{w, control.Event{Kind: control.ControlFenced}, "fences control", ""}}
	case control.ReadControl:
		c := s.states[w.state]
		if s.rules.ignoreFencing && c.Run == control.Fencing && c.By != fmt.Sprintf("command %d", i+1) {
			c.Run, c.Target, c.FenceJobs = c.Target, "", 0
		}
		return []outcome{{w, control.Event{Kind: control.Read, Found: w.state != 0, State: c}, fmt.Sprintf("reads generation %d %s", c.Generation, c.Run), ""}}
	case control.WriteControl:
		return s.write(w, i, a)
	case control.FenceJob:
		if w.fences == 0 {
			return nil
		}
		w.fences--
		w.epoch[k]++
		r.token = w.epoch[k]
		e := control.Event{Kind: control.JobFenced, LogGeneration: uint64(w.log[k])}
		if s.rules.ignoreLog {
			e.LogGeneration = 0
		}
		return []outcome{{w, e, fmt.Sprintf("takes the id of job %d", k), ""}}
	case control.CommitFence:
		if r.token != w.epoch[k] {
			return []outcome{{w, failed(lease.Fenced), fmt.Sprintf("is fenced on job %d", k), ""}}
		}
		broken := ""
		if uint64(w.log[k]) > a.Generation {
			broken = fmt.Sprintf("I11: fence of generation %d in a log of generation %d", a.Generation, w.log[k])
		}
		w.log[k] = uint8(a.Generation)
		return []outcome{{w, control.Event{Kind: control.FenceCommitted}, fmt.Sprintf("commits fence %d of job %d", a.Generation, k), broken}}
	}
	what := map[control.ActionKind]string{control.Done: "done", control.Superseded: "superseded", control.AlreadySo: "already so", control.Refusal: "refused"}[a.Kind]
	return []outcome{{world: w, what: fmt.Sprintf("says %s, generation %d %s", what, a.State.Generation, a.Reason), broken: s.said(w, i, a)}}
}

// write is compare-and-set, with the answer lost now and then.
func (s *search) write(w world, i int, a control.Action) []outcome {
	what := fmt.Sprintf("writes generation %d %s", a.State.Generation, a.State.Run)
	unknown := control.Event{Kind: control.Failed, Verdict: lease.Unknown}
	if w.commands[i].controls != w.controlEpoch && !s.rules.noCompareAndSet {
		return []outcome{{w, control.Event{Kind: control.Failed, Verdict: lease.Fenced}, "is fenced on control", ""}}
	}
	before, broken := s.states[w.state], ""
	switch {
	case a.State.Generation < before.Generation:
		broken = fmt.Sprintf("control falls from generation %d to %d", before.Generation, a.State.Generation)
	case a.State.Generation == before.Generation && !(before.Run == control.Fencing && before.Target == a.State.Run):
		broken = fmt.Sprintf("generation %d is written twice, as %s and as %s", before.Generation, before.Run, a.State.Run)
	}
	for k := range min(before.FenceJobs, jobs) {
		if before.Run == control.Fencing && uint64(w.log[k]) < before.Generation {
			broken = fmt.Sprintf("generation %d is written over the fencing of %d, job %d not fenced", a.State.Generation, before.Generation, k)
		}
	}
	written := w
	written.state = s.state(a.State)
	out := []outcome{{written, control.Event{Kind: control.Written}, what, broken}}
	if w.unknowns > 0 {
		w.unknowns--
		written.unknowns--
		out = append(out, outcome{written, unknown, what + ", answer lost", broken}, outcome{w, unknown, "does not write, answer lost", ""})
	}
	return out
}

// said checks that a command tells the truth.
func (s *search) said(w world, i int, a control.Action) string {
	c := s.states[w.state]
	switch {
	case a.Kind == control.Refusal:
		return "refused: " + a.Reason
	case a.Kind == control.Superseded && a.State.Generation > c.Generation:
		return "superseded by what is not there"
	case a.Kind == control.Superseded:
		return ""
	case a.State.Generation != c.Generation:
		return "" // a reading of control which is not the newest any more; its own time has been checked
	case a.State.Run != c.Run || c.Run == control.Fencing:
		return fmt.Sprintf("says %s, control holds %s", a.State.Run, c.Run)
	case s.kinds[i] == control.Create && (c.Incarnation != a.State.Incarnation):
		return "two incarnations"
	}
	want := map[control.CommandKind]control.Run{control.Stop: control.Stopped, control.Pause: control.Paused, control.Start: control.Running,
		control.Create: control.Running}[s.kinds[i]]
	if want != "" && c.Run != want {
		return fmt.Sprintf("says that it is %s, control holds %s", want, c.Run)
	}
	for k, h := range w.holder {
		if h.token != 0 && h.token == w.epoch[k] && uint64(h.generation) < c.Generation && c.Run != control.Running {
			return fmt.Sprintf("I11: generation %d is %s, a worker of generation %d can commit for job %d", c.Generation, c.Run, h.generation, k)
		}
	}
	return ""
}

// allOver says whether every command has ended, the last one alive.
func (s *search) allOver(w world) bool {
	for i := range s.kinds {
		if c := w.commands[i]; !c.ended && (!c.dead || i == len(s.kinds)-1) {
			return false
		}
	}
	return true
}

func (s *search) run(start world) (int, string, []string) {
	type origin struct {
		before int
		what   string
	}
	seen, queue, origins := map[world]struct{}{start: {}}, []world{start}, []origin{{before: -1}}
	trace := func(at int, more ...string) []string {
		for i := at; origins[i].before >= 0; i = origins[i].before {
			more = append([]string{origins[i].what}, more...)
		}
		return more
	}
	for at := 0; at < len(queue); at++ {
		w := queue[at]
		next := s.steps(w)
		if len(next) == 0 && s.states[w.state].Run == control.Fencing && s.allOver(w) {
			return len(queue), "fencing for ever", trace(at)
		}
		for _, n := range next {
			if n.broken != "" {
				return len(queue), n.broken, trace(at, n.what)
			}
			if _, ok := seen[n.world]; !ok {
				seen[n.world] = struct{}{}
				queue, origins = append(queue, n.world), append(origins, origin{at, n.what})
			}
		}
	}
	return len(queue), "", nil
}

// Two commands at once, death at every step, a start after a dead stop, lost answers: every command says only what is true, and
// nothing of an older generation can commit. Each rule taken away breaks that.
func TestCommandsHoldInEveryInterleavingAndEveryRuleIsNeeded(t *testing.T) {
	t.Parallel()
	const create, stop, start, apply, pause = control.Create, control.Stop, control.Start, control.Apply, control.Pause
	type kinds = []control.CommandKind
	for _, c := range []struct {
		name                    string
		kinds                   kinds
		after                   []int
		from                    control.Run
		rules                   rules
		deaths, unknowns, takes uint8
		broken                  string
	}{
		{"two creates", kinds{create, create}, []int{-1, -1}, "", rules{}, 1, 1, 0, ""},
		{"two creates without compare-and-set", kinds{create, create}, []int{-1, -1}, "", rules{noCompareAndSet: true}, 0, 0, 0, "generation 1 is written twice"},
		{"stop and start at once", kinds{stop, start}, []int{-1, -1}, control.Running, rules{}, 0, 1, 2, ""},
		{"start and apply at once", kinds{start, apply}, []int{-1, -1}, control.Stopped, rules{}, 1, 0, 2, ""},
		{"start and apply at once without compare-and-set", kinds{start, apply}, []int{-1, -1}, control.Stopped, rules{noCompareAndSet: true}, 0, 0, 1, "generation 2 is written"},
		{"two stops at once", kinds{stop, stop}, []int{-1, -1}, control.Running, rules{}, 0, 1, 1, ""},
		{"two stops at once without compare-and-set", kinds{stop, stop}, []int{-1, -1}, control.Running, rules{noCompareAndSet: true}, 0, 0, 0, "generation 2 is written"},
		{"start after a dead stop", kinds{stop, start}, []int{-1, 0}, control.Running, rules{}, 1, 1, 2, ""},
		{"start after a dead stop, fencing not finished", kinds{stop, start}, []int{-1, 0}, control.Running, rules{ignoreFencing: true}, 1, 0, 2, "generation 3 is written over the fencing of 2"},
		{"stop races apply, then start", kinds{stop, apply, start}, []int{-1, -1, 1}, control.Running, rules{}, 0, 0, 1, ""},
		{"stop races stop and a start, log not looked at", kinds{stop, stop, start}, []int{-1, -1, 1}, control.Running, rules{ignoreLog: true}, 0, 0, 2, "I11: fence"},
		{"stop races stop and a start", kinds{stop, stop, start}, []int{-1, -1, 1}, control.Running, rules{}, 0, 0, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &search{kinds: c.kinds, after: c.after, rules: c.rules, stateIDs: map[string]uint8{}, ids: map[string]uint16{},
				entries: make([]entry, 1), states: make([]control.State, 1)}
			w := world{deaths: c.deaths, unknowns: c.unknowns, takes: c.takes, fences: 8}
			if c.from != "" {
				w.state, w.log = s.state(control.State{Generation: 1, Run: c.from, Jobs: jobs}), [jobs]uint8{1, 1}
				if c.from == control.Running {
					w.epoch, w.holder = [jobs]uint8{1, 1}, [jobs]holder{{1, 1}, {1, 1}}
				}
			}
			n, broken, trace := s.run(w)
			t.Logf("%d worlds; %s\n\t%s", n, broken, strings.Join(trace, "\n\t"))
			if (broken == "") != (c.broken == "") || !strings.HasPrefix(broken, c.broken) {
				t.Errorf("broken law %q, want %q", broken, c.broken)
			}
		})
	}
}
