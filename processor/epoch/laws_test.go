package epoch

import (
	"fmt"
	"testing"
)

// world is what a checker apart from the machine knows: the work of the open epoch and the times of what has happened.
type world struct {
	records int
	bytes   int64
	worked  bool
	loud    bool
	since   int64
	sending bool
	settled int64
	ended   bool
	now     int64
}

type move struct {
	event Event
	in    Input
	after int64 // time that passes before it
}

func moves() []move {
	var out []move
	for _, after := range []int64{0, 2, 7} {
		out = append(out,
			move{Worked, Input{Records: 1, Bytes: 1}, after},
			move{Worked, Input{Bytes: 1, Silent: true}, after},
			move{Worked, Input{Records: 2, Bytes: 3, Silent: true}, after},
			move{Looked, Input{Slot: 1}, after},
			move{Looked, Input{Drained: true}, after},
			move{Looked, Input{Drained: true, Slot: 1}, after},
			move{Looked, Input{Drained: true, Slot: 9}, after},
			move{Committed, Input{}, after},
		)
	}
	return append(out, move{Worked, Input{}, 0}, move{Ended, Input{}, 0})
}

var small = Config{MaxInterval: 6, Settle: 3, MaxRecords: 3, MaxBytes: 4}

// TestLawsHoldInEverySmallWorld walks every sequence of five moves, of which there are millions, and checks each answer against rules
// written apart from the machine: an epoch closes only with work, one at a time, not within settle, not before the pacer allows it,
// not once the term has ended; early only for something that a reader waits for or when it is full; and it closes as soon as it may.
func TestLawsHoldInEverySmallWorld(t *testing.T) {
	t.Parallel()
	depth := 5
	if testing.Short() {
		depth = 4
	}
	all := moves()
	trace := make([]move, 0, depth)
	var walk func(m Machine, w world)
	walk = func(m Machine, w world) {
		if t.Failed() || len(trace) == depth {
			return
		}
		for _, mv := range all {
			if mv.event == Committed && !w.sending {
				continue // nobody reports a commit of nothing
			}
			trace = append(trace, mv)
			m2, w2 := m, w
			if err := w2.step(&m2, mv); err != nil {
				t.Errorf("after %+v: %v", trace, err)
				return
			}
			walk(m2, w2)
			trace = trace[:len(trace)-1]
		}
	}
	walk(Machine{Config: small}, world{})
}

func (w *world) step(m *Machine, mv move) error {
	w.now += mv.after
	in := mv.in
	in.Now = w.now
	if in.Slot > 1 {
		in.Slot += w.now - mv.after // some time ahead, unless time has passed
	}
	before := *m
	act := m.Step(mv.event, in)
	switch mv.event {
	case Worked:
		if !w.worked {
			w.worked, w.since = true, w.now
		}
		w.records, w.bytes, w.loud = w.records+in.Records, w.bytes+in.Bytes, w.loud || !in.Silent
	case Committed:
		w.sending, w.settled = false, w.now+int64(small.Settle)
	case Ended:
		w.ended = true
	}
	if mv.event != Looked {
		if act != (Action{}) {
			return fmt.Errorf("answered %+v to something else than a look", act)
		}
		return w.shown(m)
	}
	return w.looked(&before, m, in, act)
}

func (w *world) full() bool { return w.records >= small.MaxRecords || w.bytes >= small.MaxBytes }

// due is when the open epoch may close, as far as the pacer's slot lets it.
func (w *world) due(in Input) int64 {
	due := w.since + int64(small.MaxInterval)
	if w.full() || in.Drained && w.loud {
		due = 0
	}
	return max(due, w.settled)
}

func (w *world) looked(before, m *Machine, in Input, act Action) error {
	may := w.worked && !w.sending && !w.ended && w.now >= w.due(in)
	if ask := may && in.Slot == 0; act.Ask != ask {
		return fmt.Errorf("asked for a slot: %v, should: %v, in %+v", act.Ask, ask, *w)
	}
	if may = may && in.Slot != 0 && w.now >= in.Slot; act.Close != may {
		return fmt.Errorf("closed: %v, may close: %v, in %+v", act.Close, may, *w)
	}
	switch {
	case act.Close:
		*w = world{sending: true, settled: w.settled, now: w.now}
	case act.Ask:
	case act.Wake != 0:
		if act.Wake <= w.now {
			return fmt.Errorf("wakes at %d, now is %d", act.Wake, w.now)
		}
		early, in2 := *before, in
		in2.Now = act.Wake - 1
		if in2.Now > w.now && early.Step(Looked, in2).Close {
			return fmt.Errorf("wakes at %d, could have closed at %d", act.Wake, in2.Now)
		}
		late := *before
		in2.Now = act.Wake
		if a := late.Step(Looked, in2); !a.Close && !a.Ask && a.Wake <= act.Wake {
			return fmt.Errorf("woken at %d in vain", act.Wake)
		}
	case w.worked && !w.sending && !w.ended:
		return fmt.Errorf("work waits, and nobody is woken for it: %+v", *w)
	}
	return w.shown(m)
}

// shown compares what the machine tells of itself.
func (w *world) shown(m *Machine) error {
	if m.Full() != w.full() || m.Sending() != w.sending || m.Open() != w.records {
		return fmt.Errorf("machine shows full=%v sending=%v open=%d, world is %+v", m.Full(), m.Sending(), m.Open(), *w)
	}
	return nil
}
