package dedup

import (
	"fmt"
	"slices"

	"github.com/kafka-processor/processor/processor/message"
)

const (
	maxAttempts = 3
	targets     = 2
)

// world is one origin partition with inputs 1..inputs, its attempts, and the log of all target partitions together. What the
// receivers make of the log depends on its order alone, so that they are a fold over it.
type world struct {
	committed uint8 // next input to process, as committed
	holder    uint8 // attempt that may commit, from 1
	attempts  [maxAttempts]attempt
	begun     uint8
	log       [6]record
	written   uint8
	reset     bool
	changed   bool  // code and line have changed
	changedAt uint8 // length of the log when they did
}

type attempt struct {
	start, next, failed uint8 // first input, next input, first input whose child was not acknowledged
	lost                uint8 // bit set of inputs whose batch was not written
}

type record struct {
	target, id, prev, attempt uint8
	start                     bool
}

// swift is the search, and the rules that are taken away.
type swift struct {
	inputs, attempts uint8
	noLink           bool                          // predecessors are not looked at
	equal            bool                          // a predecessor must be the frontier, not only not above it
	freshAny         bool                          // a receiver without a frontier accepts anything
	ackedLink        bool                          // the predecessor is the last that was written, not the last handed over
	repeat           bool                          // a failed record is repeated inside the attempt
	filter           uint8                         // input that the receiver's filter drops
	filterFirst      bool                          // the filter comes before the frontier
	absent           uint8                         // input that later attempts do not find any more
	target           func(attempt, id uint8) uint8 // code that changes from attempt to attempt
	drained          bool                          // it changes only after a drained stop
	line             bool                          // and gets a new line
	reset            bool                          // attempt 3 comes after a reset to the beginning
}

func (s *swift) targetOf(a, id uint8) uint8 {
	if s.target == nil {
		return 0
	}
	return s.target(a, id)
}

func (s *swift) makes(a, id uint8) bool { return id != s.absent || a == 1 }

// fingerprint of the records of an attempt: a new line, or incarnation, has another.
func (s *swift) fingerprint(a uint8) uint64 {
	switch {
	case s.line && s.target != nil && a >= 2, s.line && s.reset && a >= 3:
		return 2
	}
	return 1
}

// fold is the receivers: the real Frontier of each target partition over the log. It returns the inputs in order of effect.
func (s *swift) fold(w *world) (out []uint8, filtered bool) {
	var frontiers [targets]*Frontier
	var last [targets]uint8
	for p := range frontiers {
		frontiers[p] = NewFrontier()
		frontiers[p].KnownLine(1)
	}
	switchLine := func() {
		for p := range frontiers {
			frontiers[p].Forget(1)
			frontiers[p].KnownLine(2)
		}
	}
	for i, r := range w.log[:w.written] {
		if s.line && w.changed && i == int(w.changedAt) {
			switchLine()
		}
		if s.filter == r.id && s.filterFirst {
			filtered = true
			continue
		}
		f := frontiers[r.target]
		id := message.ID{Fingerprint: s.fingerprint(r.attempt), Partition: 5, Offset: uint64(r.id)}
		v := f.Check(id, true, r.start, uint64(r.prev), 0)
		switch {
		case s.equal && v == Accept && !r.start && r.prev != last[r.target]:
			v = Gap
		case v == Gap && (s.noLink || s.freshAny && last[r.target] == 0):
			v = Accept
		}
		if v != Accept {
			continue
		}
		f.Advance(id)
		last[r.target] = r.id
		if s.filter == r.id {
			filtered = true
			continue
		}
		out = append(out, r.id)
	}
	return out, filtered
}

// broken says which law the receivers show to be broken.
func (s *swift) broken(w *world) string {
	out, filtered := s.fold(w)
	for i, id := range out {
		if slices.Contains(out[:i], id) {
			return fmt.Sprintf("I4: duplicate effect %v", out)
		}
		if i > 0 && id < out[i-1] && s.target == nil {
			return fmt.Sprintf("I5: order %v", out)
		}
	}
	if w.holder == 0 || w.committed != s.inputs+1 {
		return ""
	}
	for id := uint8(1); id <= s.inputs; id++ {
		if !slices.Contains(out, id) && !(filtered && id == s.filter) && id != s.absent {
			return fmt.Sprintf("I6: lost %d for good: all is acknowledged and committed, effects are %v", id, out)
		}
	}
	return ""
}

// link is what the real Chain of an attempt says of its next output.
func (s *swift) link(w *world, a uint8) (r record) {
	at := w.attempts[a-1]
	c := NewChain(targets)
	for id := at.start; id <= at.next; id++ {
		if !s.makes(a, id) || s.ackedLink && at.lost&(1<<id) != 0 {
			continue
		}
		start, prev, _ := c.Next(5, int32(s.targetOf(a, id)), uint64(id), 0)
		r = record{target: s.targetOf(a, id), id: id, prev: uint8(prev), attempt: a, start: start}
	}
	return r
}

type move struct {
	world world
	what  string
}
