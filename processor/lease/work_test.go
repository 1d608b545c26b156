package lease_test

import (
	"fmt"

	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/lease"
)

// work carries out what the machine of job k at worker i waits for, in every way in which it can come out.
func (s *search) work(next []successor, w world, i, k int) []successor {
	h := w.workers[i].jobs[k]
	m := &s.machines[h.machine]
	generation := m.machine.Generation()
	add := func(w world, broken, format string, args ...any) {
		next = append(next, successor{world: w, broken: broken, what: func() string {
			return fmt.Sprintf("W%d(g%d) job %d: ", i+1, generation, k) + fmt.Sprintf(format, args...)
		}})
	}
	switch m.action.Kind {
	case lease.ReadControl:
		e := s.reading(w, generation)
		e.Kind = lease.ControlRead
		if s.rules.offsetsFirst {
			w.workers[i].jobs[k].base = s.offsets(w, i, k)
		}
		s.feed(&w, i, k, e)
		add(w, "", "reads control, generation %d", e.Generation)
	case lease.InitProducerID:
		if w.inits == 0 {
			break
		}
		w.inits--
		w.epoch[k]++
		w.workers[i].jobs[k].token = w.epoch[k]
		s.feed(&w, i, k, lease.Event{Kind: lease.Initialized})
		add(w, "", "initializes the id, which fences")
	case lease.ReadLog:
		e, l := s.reading(w, generation), w.log[k]
		e.Kind, e.Term, e.EpochTerm, e.EpochNumber = lease.LogRead, uint64(l.term), uint64(l.epochTerm), uint64(l.epochNumber)
		if !s.rules.ignoreGeneration {
			e.LogGeneration = uint64(l.generation)
		}
		s.feed(&w, i, k, e)
		add(w, s.doubtBroken(w, i, k), "reads the log: generation %d, term %d, and control: generation %d", l.generation, l.term, e.Generation)
	case lease.CommitAcquired:
		l := logEnd{uint8(generation), uint8(m.action.Term), w.log[k].epochTerm, w.log[k].epochNumber}
		s.commit(w, i, k, 0, fmt.Sprintf("acquired record of term %d", m.action.Term), add, func(w *world) string {
			w.log[k] = l
			return ""
		}, lease.AcquiredCommitted)
	case lease.Restore:
		if !s.rules.offsetsFirst && !(s.rules.keepMemory && h.base != [2]int8{}) {
			w.workers[i].jobs[k].base = s.offsets(w, i, k)
		}
		s.feed(&w, i, k, lease.Event{Kind: lease.Restored})
		add(w, "", "restores, offsets %v", w.workers[i].jobs[k].base)
	case lease.Run:
		s.epochs(w, i, k, add)
	}
	return next
}

// reading is what control shows, unless the worker does not look.
func (s *search) reading(w world, generation uint64) lease.Event {
	if s.rules.ignoreGeneration {
		return lease.Event{Generation: generation, Running: true}
	}
	c := &s.states[w.control]
	return lease.Event{Generation: c.Generation, Running: c.Run == control.Running}
}

// offsets are the committed ones of the job's partitions, counted from 1; 0 is a partition of another job.
func (s *search) offsets(w world, i, k int) (base [2]int8) {
	for x := range 2 {
		if x%int(s.states[w.workers[i].control].Jobs) == k {
			base[x] = int8(w.off[x]) + 1
		}
	}
	return base
}

// doubtBroken says whether the machine's answer about an epoch in doubt is the truth.
func (s *search) doubtBroken(w world, i, k int) string {
	h := w.workers[i].jobs[k]
	switch a := s.machines[h.machine].action; {
	case a.Kind != lease.CommitAcquired:
	case a.Doubt == lease.Counted && !h.applied, a.Doubt == lease.NotCounted && h.applied:
		return fmt.Sprintf("the log says %q of an epoch, committed is %v", a.Doubt, h.applied)
	}
	return ""
}

// epochs commits one epoch of a running job.
func (s *search) epochs(w world, i, k int, add func(world, string, string, ...any)) {
	h := w.workers[i].jobs[k]
	if w.epoch[k] == h.token && w.commits == 0 {
		return
	}
	term := s.machines[h.machine].machine.Term()
	number := w.log[k].epochNumber + 1
	s.commit(w, i, k, uint64(number), fmt.Sprintf("epoch (%d,%d)", term, number), add, func(w *world) string {
		broken := ""
		for x := range 2 {
			if h.base[x] == 0 {
				continue
			}
			if h.base[x] != int8(w.off[x])+1 {
				broken = fmt.Sprintf("I1/I4: partition %d is processed again from offset %d, committed is %d", x, h.base[x]-1, w.off[x])
			}
			w.off[x]++
			w.workers[i].jobs[k].base[x]++
		}
		w.commits--
		w.log[k].epochTerm, w.log[k].epochNumber = uint8(term), number
		return broken
	}, lease.Committed)
}

// commit is a transaction with its outcomes: fenced, committed, and committed or not with the answer lost.
func (s *search) commit(w world, i, k int, number uint64, what string, add func(world, string, string, ...any), apply func(*world) string, done lease.EventKind) {
	h := w.workers[i].jobs[k]
	if h.token != w.epoch[k] {
		s.feed(&w, i, k, lease.Event{Kind: lease.Failed, Verdict: lease.Fenced})
		add(w, "", "is fenced at its %s", what)
		return
	}
	generation := s.machines[h.machine].machine.Generation()
	outcome := func(w world, applied, known bool, how string) {
		broken := ""
		if applied {
			switch broken = apply(&w); {
			case broken != "":
			case generation < uint64(w.returned):
				broken = fmt.Sprintf("I11: generation %d commits after the fencing of generation %d was reported as done", generation, w.returned)
			case generation < uint64(w.log[k].generation):
				broken = fmt.Sprintf("I11: generation %d commits into a log of generation %d", generation, w.log[k].generation)
			}
		}
		if known {
			s.feed(&w, i, k, lease.Event{Kind: done})
		} else {
			w.unknowns--
			if number > 0 {
				w.workers[i].jobs[k].applied = applied
			}
			s.feed(&w, i, k, lease.Event{Kind: lease.Failed, Verdict: lease.Unknown, EpochNumber: number})
		}
		add(w, broken, "%s %s", how, what)
	}
	outcome(w, true, true, "commits")
	if w.unknowns > 0 {
		outcome(w, true, false, "commits, answer lost,")
		outcome(w, false, false, "does not commit, answer lost,")
	}
}

// commandStep carries out what the command waits for, or lets it die, or begins the next one.
func (s *search) commandStep(next []successor, w world) []successor {
	if w.command.command == 0 {
		if int(w.next) == len(s.kinds) {
			return next
		}
		kind := s.kinds[w.next]
		w.next++
		p := control.Params{By: fmt.Sprintf("command %d", w.next), State: control.State{Jobs: s.jobs1}}
		e := commandEntry{command: control.NewCommand(kind, p)}
		e.action = e.command.Step(control.Event{Kind: control.Begin})
		w.command = slot{command: s.commandID(e)}
		return append(next, successor{world: w, what: func() string { return fmt.Sprintf("command %d begins", w.next) }})
	}
	if w.deaths > 0 {
		dead := w
		dead.deaths--
		dead.command = slot{}
		next = append(next, successor{world: dead, what: func() string { return fmt.Sprintf("command %d dies", w.next) }})
	}
	e := s.commands[w.command.command]
	event, what, broken, ok := s.carryOut(&w, e.action)
	if !ok {
		return next
	}
	if event.Kind == 0 {
		w.command = slot{}
	} else {
		e.action = e.command.Step(event)
		w.command.command = s.commandID(e)
	}
	return append(next, successor{world: w, broken: broken, what: func() string { return fmt.Sprintf("command %d %s", w.next, what) }})
}

// carryOut does to the world what the action says; an event of kind 0 ends the command.
func (s *search) carryOut(w *world, a control.Action) (e control.Event, what, broken string, ok bool) {
	fenced := control.Event{Kind: control.Failed, Verdict: lease.Fenced}
	switch k := a.Job; a.Kind {
	case control.FenceControl:
		w.controlEpoch++
		w.command.controls = w.controlEpoch
		return control.Event{Kind: control.ControlFenced}, "fences control", "", true
	case control.ReadControl:
		c := s.states[w.control]
		if s.rules.ignoreFencing && c.Run == control.Fencing && c.By != fmt.Sprintf("command %d", w.next) {
			c.Run, c.Target, c.FenceJobs = control.Stopped, "", 0
		}
		return control.Event{Kind: control.Read, Found: true, State: c}, fmt.Sprintf("reads control, generation %d %s", c.Generation, c.Run), "", true
	case control.WriteControl:
		if w.command.controls != w.controlEpoch {
			return fenced, "is fenced on control", "", true
		}
		w.control = s.stateID(a.State)
		return control.Event{Kind: control.Written}, fmt.Sprintf("writes control, generation %d %s", a.State.Generation, a.State.Run), "", true
	case control.FenceJob, control.CommitFence:
		return s.fence(w, a)
	case control.Done:
		w.returned = max(w.returned, uint8(a.State.Generation))
		return e, fmt.Sprintf("says that generation %d is done", a.State.Generation), "", true
	default:
		return e, fmt.Sprintf("ends, action %d: job %d %s", a.Kind, k, a.Reason), "", true
	}
}

func (s *search) fence(w *world, a control.Action) (e control.Event, what, broken string, ok bool) {
	k := a.Job
	if s.rules.fenceNewOnly && k >= s.jobs1 {
		e.Kind = control.JobFenced
		if a.Kind == control.CommitFence {
			e.Kind = control.FenceCommitted
		}
		return e, fmt.Sprintf("passes over job %d", k), "", true
	}
	if a.Kind == control.FenceJob {
		if w.inits == 0 {
			return e, "", "", false
		}
		w.inits--
		w.epoch[k]++
		w.command.token = w.epoch[k]
		return control.Event{Kind: control.JobFenced, LogGeneration: uint64(w.log[k].generation)}, fmt.Sprintf("takes the id of job %d", k), "", true
	}
	if w.command.token != w.epoch[k] {
		return control.Event{Kind: control.Failed, Verdict: lease.Fenced}, fmt.Sprintf("is fenced on job %d", k), "", true
	}
	if a.Generation < uint64(w.log[k].generation) {
		broken = fmt.Sprintf("I11: a fence of generation %d in a log of generation %d", a.Generation, w.log[k].generation)
	}
	w.log[k].generation = uint8(a.Generation)
	return control.Event{Kind: control.FenceCommitted}, fmt.Sprintf("commits a fence of generation %d for job %d", a.Generation, k), broken, true
}
