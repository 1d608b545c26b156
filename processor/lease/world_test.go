package lease_test

import (
	"fmt"

	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/lease"
)

// world is one state of a small cluster: two partitions of input, up to two jobs, two workers that both believe to be assigned
// every job, and a list of commands. It is comparable; machines are kept once each and named by number.
type world struct {
	epoch        [2]uint8 // producer epoch of each job's transactional id
	log          [2]logEnd
	off          [2]uint8 // committed offset of each partition
	controlEpoch uint8
	control      uint8 // state number
	returned     uint8 // newest generation whose fencing a command reported as done
	workers      [2]worker
	command      slot
	next         uint8 // command to begin when the one in slot has ended
	inits        uint8 // what may still happen
	commits      uint8
	unknowns     uint8
	deaths       uint8
}

type logEnd struct{ generation, term, epochTerm, epochNumber uint8 }

type worker struct {
	control uint8 // state number that it runs
	jobs    [2]holder
}

// holder is a machine with the action that it waits for, and the memory of its term.
type holder struct {
	machine uint16
	token   uint8 // producer epoch of its client
	base    [2]int8
	applied bool // truth about its last epoch of unknown outcome
}

type slot struct {
	command  uint16 // 0: none
	token    uint8  // producer epoch of its client for a job's id
	controls uint8  // producer epoch of its client for control
}

type machineEntry struct {
	machine lease.Machine
	action  lease.Action
}

type commandEntry struct {
	command control.Command
	action  control.Action
}

// search holds the numbers of machines and the rules that are taken away.
type search struct {
	jobs0, jobs1 int32
	kinds        []control.CommandKind // one after the other; each begins when the one before has ended or died
	rules        rules

	machines   []machineEntry
	machineIDs map[machineEntry]uint16
	commands   []commandEntry
	commandIDs map[string]uint16
	states     []control.State
	stateIDs   map[string]uint8
}

// rules taken away, one at a time.
type rules struct {
	ignoreFencing    bool // a command treats an unfinished fencing as finished
	fenceNewOnly     bool // only the ids of the new number of jobs are fenced
	ignoreGeneration bool // control and log are not looked at when acquiring
	keepMemory       bool // an unknown outcome is taken for a failure, and the term's memory for good
	offsetsFirst     bool // committed offsets are read before fencing
}

func newSearch(jobs0, jobs1 int32, r rules, kinds ...control.CommandKind) *search {
	return &search{jobs0: jobs0, jobs1: jobs1, kinds: kinds, rules: r, machineIDs: map[machineEntry]uint16{}, commandIDs: map[string]uint16{},
		stateIDs: map[string]uint8{}, commands: make([]commandEntry, 1)}
}

func (s *search) start(inits, commits, unknowns, deaths uint8) world {
	w := world{inits: inits, commits: commits, unknowns: unknowns, deaths: deaths, log: [2]logEnd{{generation: 1}, {generation: 1}}}
	w.control = s.stateID(control.State{Generation: 1, Run: control.Running, Jobs: s.jobs0})
	for i := range w.workers {
		w.workers[i].control = w.control
		for k := range 2 {
			e := machineEntry{machine: lease.New(int32(k), 1)}
			if int32(k) < s.jobs0 {
				e.action = e.machine.Step(lease.Event{Kind: lease.Assigned})
			}
			w.workers[i].jobs[k].machine = s.machineID(e)
		}
	}
	return w
}

func (s *search) machineID(e machineEntry) uint16 {
	e.action.Reason = ""
	id, ok := s.machineIDs[e]
	if !ok {
		id = uint16(len(s.machines))
		s.machineIDs[e], s.machines = id, append(s.machines, e)
	}
	return id
}

func (s *search) commandID(e commandEntry) uint16 {
	key := fmt.Sprintf("%+v", e)
	id, ok := s.commandIDs[key]
	if !ok {
		id = uint16(len(s.commands))
		s.commandIDs[key], s.commands = id, append(s.commands, e)
	}
	return id
}

func (s *search) stateID(c control.State) uint8 {
	key := fmt.Sprintf("%+v", c)
	id, ok := s.stateIDs[key]
	if !ok {
		id = uint8(len(s.states))
		s.stateIDs[key], s.states = id, append(s.states, c)
	}
	return id
}

// successor is a world and how it came about. A broken law says which.
type successor struct {
	world  world
	what   func() string
	broken string
}

// run searches all worlds, nearest first. It returns the number of worlds and the shortest way to a broken law.
func (s *search) run(start world) (int, string, []string) {
	type origin struct {
		before int
		what   func() string
	}
	seen := map[world]struct{}{start: {}}
	queue, origins := []world{start}, []origin{{before: -1}}
	for at := 0; at < len(queue); at++ {
		for _, n := range s.successors(queue[at]) {
			if n.broken != "" {
				trace := []string{n.what()}
				for i := at; origins[i].before >= 0; i = origins[i].before {
					trace = append([]string{origins[i].what()}, trace...)
				}
				return len(queue), n.broken, trace
			}
			if _, ok := seen[n.world]; !ok {
				seen[n.world] = struct{}{}
				queue, origins = append(queue, n.world), append(origins, origin{at, n.what})
			}
		}
	}
	return len(queue), "", nil
}

func (s *search) successors(w world) []successor {
	var next []successor
	for i := range w.workers {
		next = s.tail(next, w, i)
		for k := range 2 {
			next = s.work(next, w, i, k)
		}
	}
	return s.commandStep(next, w)
}

// tail is a worker that sees what control holds now, and runs it.
func (s *search) tail(next []successor, w world, i int) []successor {
	if w.workers[i].control == w.control {
		return next
	}
	c := &s.states[w.control]
	w.workers[i].control = w.control
	for k := range 2 {
		kind := lease.Revoked
		if int32(k) < c.Jobs {
			kind = lease.Assigned
		}
		s.feed(&w, i, k, lease.Event{Kind: lease.ControlChanged, Generation: c.Generation, Running: c.Run == control.Running})
		s.feed(&w, i, k, lease.Event{Kind: kind})
	}
	return append(next, successor{world: w, what: func() string {
		return fmt.Sprintf("W%d sees control: generation %d %s, %d jobs", i+1, c.Generation, c.Run, c.Jobs)
	}})
}

// feed gives an event to a machine and carries out what needs nobody else: dropping, pausing, waiting for a heartbeat.
func (s *search) feed(w *world, i, k int, e lease.Event) {
	h := &w.workers[i].jobs[k]
	entry := s.machines[h.machine]
	a := entry.machine.Step(e)
	for {
		switch a.Kind {
		case lease.DropTerm:
			h.token = 0
			if !s.rules.keepMemory {
				h.base = [2]int8{}
			}
			a = entry.machine.Step(lease.Event{Kind: lease.Released})
			continue
		case lease.AwaitHeartbeat:
			entry.machine.Step(lease.Event{Kind: lease.PauseOver})
			a = entry.machine.Step(lease.Event{Kind: lease.Heartbeat})
			continue
		}
		break
	}
	if a.Kind != lease.None {
		entry.action = a
	}
	h.machine = s.machineID(entry)
}
