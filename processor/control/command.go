package control

import "github.com/kafka-processor/processor/processor/lease"

// CommandKind says what a command wants.
type CommandKind uint8

// The commands.
const (
	Create   CommandKind = iota + 1 // write the first state; needs Params.State
	Stop                            // end all work
	Start                           // run what is stopped or paused
	Apply                           // put spec, jobs, dynamic part, topics, schemas and lines of Params.State in force; running or not stays as it is
	Pause                           // end all work for a while
	Complete                        // end all work: there is no more
)

// EventKind says what happened.
type EventKind uint8

// The events.
const (
	Begin          EventKind = iota + 1 // the first event of a command
	ControlFenced                       // answer to FenceControl
	Read                                // answer to ReadControl: Found, State
	Written                             // answer to WriteControl
	JobFenced                           // answer to FenceJob: LogGeneration
	FenceCommitted                      // answer to CommitFence
	Failed                              // the last action failed: Verdict, Reason
)

// Event is one thing that happened.
type Event struct {
	Kind          EventKind
	Verdict       lease.Verdict
	Found         bool   // control holds a record
	State         State  // the last one
	LogGeneration uint64 // newest generation in the log of the job that was fenced, 0 if none
	Reason        string
}

// ActionKind says what to do.
type ActionKind uint8

// The actions.
const (
	// FenceControl: a fresh client, InitProducerID on control's transactional id.
	FenceControl ActionKind = iota + 1
	// ReadControl: read control to its read-uncommitted end.
	ReadControl
	// WriteControl: commit State on the client that fenced control.
	WriteControl
	// FenceJob: a fresh client, InitProducerID on the id of Job; then read its log to the end.
	FenceJob
	// CommitFence: commit a fence record of Generation under Job's id, repeating all else of its last complete record.
	CommitFence
	// Done: what the command wants is true, and State is in control.
	Done
	// Superseded: another command has overtaken this one; State is what it wrote.
	Superseded
	// AlreadySo: what the command wants was true before; State says since when.
	AlreadySo
	// Refusal: the command cannot be carried out; Reason says why.
	Refusal
)

// Action is the one thing to do next.
type Action struct {
	Kind       ActionKind
	Job        int32  // FenceJob, CommitFence
	Attempt    uint32 // failures so far: pause before repeating when it has grown
	Generation uint64 // CommitFence
	State      State
	Reason     string // Refusal
}

// Params are what a command needs beside its kind.
type Params struct {
	By    string // names the command, unique: host, process, random
	Now   int64  // Unix milliseconds, for State.Since
	State State  // Create, Apply: what to write; Generation, Run, Version, Since and By are filled in, for Apply also Incarnation
}

// MaxAttempts bounds the failures of a command before it gives up.
const MaxAttempts = 20

// phase names the answer that is awaited.
type phase uint8

const (
	begun phase = iota
	fencingControl
	readingControl
	writing
	fencingJob
	committingFence
	ended
)

// Command is the machine of one command. It is a plain value: a copy is a snapshot. It is not safe for concurrent use.
type Command struct {
	kind    CommandKind
	phase   phase
	job     int32  // next id to fence
	attempt uint32 // failures so far
	mine    uint64 // generation that this command has, or may have, written; 0 if none
	params  Params
	current State // last known content of control
	pending State // what is being written
}

// NewCommand returns a command; the first event it takes is Begin.
func NewCommand(kind CommandKind, p Params) Command { return Command{kind: kind, params: p} }

// Step takes one event and says what to do next. An event that answers nothing ends the command as refused: the driver is wrong.
func (c *Command) Step(e Event) Action {
	switch {
	case e.Kind == Failed && c.phase != begun && c.phase != ended:
		return c.onFailed(e)
	case e.Kind == Begin && c.phase == begun:
		return c.enter(fencingControl, Action{Kind: FenceControl})
	case e.Kind == ControlFenced && c.phase == fencingControl:
		return c.read()
	case e.Kind == Read && c.phase == readingControl:
		return c.onRead(e)
	case e.Kind == Written && c.phase == writing:
		return c.onWritten()
	case e.Kind == JobFenced && c.phase == fencingJob:
		if e.LogGeneration > c.current.Generation {
			// Somebody is further than we are. Control says who; without fencing it, which would only hold them up.
			return c.again(c.read(), "the job log knows a newer generation than control")
		}
		return c.enter(committingFence, Action{Kind: CommitFence, Job: c.job, Generation: c.current.Generation})
	case e.Kind == FenceCommitted && c.phase == committingFence:
		c.job++
		return c.fence()
	}
	return c.refuse("event out of order")
}

// onFailed repeats what is safe to repeat: everything, from a point that depends on the phase.
func (c *Command) onFailed(e Event) Action {
	if e.Verdict == lease.Fatal || e.Verdict == lease.Refused {
		return c.refuse(e.Reason)
	}
	switch c.phase {
	case writing:
		if e.Verdict != lease.Unknown && c.pending.Generation == c.mine && c.current.Generation != c.mine {
			c.mine = 0 // the first record of this command is surely not there
		}
		fallthrough
	case fencingControl, readingControl:
		return c.again(c.enter(fencingControl, Action{Kind: FenceControl}), e.Reason)
	}
	// Fenced on a job's id: a worker that had already begun to acquire, or another command that finishes this fencing, or has.
	return c.again(c.read(), e.Reason)
}

// again counts a failure and gives up after too many.
func (c *Command) again(a Action, reason string) Action {
	c.attempt++
	if c.attempt >= MaxAttempts {
		return c.refuse("given up after many attempts: " + reason)
	}
	a.Attempt = c.attempt
	return a
}

// onRead decides what control's content means for this command.
func (c *Command) onRead(e Event) Action {
	if e.Found && e.State.Run == Fencing && e.State.Generation != c.current.Generation {
		c.job = 0 // another fencing than the one that was under way
	}
	c.current = e.State
	if c.mine != 0 {
		switch {
		case e.State.Generation > c.mine:
			return c.end(Action{Kind: Superseded, State: e.State})
		case e.State.Generation == c.mine && e.State.By == c.params.By:
			if e.State.Run == Fencing {
				return c.fence()
			}
			return c.end(Action{Kind: Done, State: e.State})
		}
		c.mine = 0 // the write in doubt did not count
	}
	return c.decide(e.Found)
}

// decide says what to write over the content of control, none of which is this command's.
func (c *Command) decide(found bool) Action {
	switch {
	case !found && c.kind == Create:
		return c.create()
	case !found:
		return c.refuse("there is no such pipeline: control is empty")
	case c.kind == Create:
		return c.end(Action{Kind: AlreadySo, State: c.current})
	case c.current.Run == Fencing:
		return c.fence()
	}
	return c.change()
}

func (c *Command) create() Action {
	s := c.params.State
	s.Generation, s.Run, s.Target, s.FenceJobs = 1, Running, "", 0
	return c.write(s)
}

// change writes what the command wants over a final state.
func (c *Command) change() Action {
	s := c.current
	s.Generation++
	switch c.kind {
	case Stop:
		if s.Run == Stopped || s.Run == Completed {
			return c.end(Action{Kind: AlreadySo, State: c.current})
		}
		s.Run, s.Target, s.FenceJobs = Fencing, Stopped, s.Jobs
	case Pause:
		if s.Run != Running {
			return c.end(Action{Kind: AlreadySo, State: c.current})
		}
		s.Run, s.Target, s.FenceJobs = Fencing, Paused, s.Jobs
	case Complete:
		if s.Run == Completed {
			return c.end(Action{Kind: AlreadySo, State: c.current})
		}
		s.Run, s.Target, s.FenceJobs = Fencing, Completed, s.Jobs
	case Apply:
		s = c.applied(s)
	case Start:
		switch s.Run {
		case Running:
			return c.end(Action{Kind: AlreadySo, State: c.current})
		case Completed:
			return c.refuse("the pipeline is completed: reset it to run it again")
		}
		s.Run = Running // stopped and paused pipelines are fenced already
	default:
		return c.refuse("no such command")
	}
	return c.write(s)
}

// applied is the fencing that puts a new spec in force over s. Both the old ids and the new ones are fenced: a holder of an
// old one may write partitions which a new one owns, and a new id may have been held before.
func (c *Command) applied(s State) State {
	p := &c.params.State
	s.FenceJobs = max(s.Jobs, p.Jobs)
	s.Run, s.Target = Fencing, s.Run
	s.Jobs, s.Spec, s.DynamicVersion, s.Dynamic = p.Jobs, p.Spec, p.DynamicVersion, p.Dynamic
	s.Topics, s.Schemas, s.Lines = p.Topics, p.Schemas, p.Lines
	return s
}

// write hands out a record of this command's own generation.
func (c *Command) write(s State) Action {
	s.Version, s.Since, s.By = Version, c.params.Now, c.params.By
	c.mine = s.Generation
	return c.put(s)
}

func (c *Command) put(s State) Action {
	c.pending = s
	return c.enter(writing, Action{Kind: WriteControl, State: s})
}

func (c *Command) onWritten() Action {
	c.current, c.job = c.pending, 0
	switch {
	case c.current.Run == Fencing:
		return c.fence()
	case c.current.Generation == c.mine:
		return c.end(Action{Kind: Done, State: c.current})
	}
	return c.decide(true) // another command's fencing is finished; now this one's own
}

// fence goes on with the fencing that control holds, and writes its final state after the last id.
func (c *Command) fence() Action {
	if c.job < c.current.FenceJobs {
		return c.enter(fencingJob, Action{Kind: FenceJob, Job: c.job})
	}
	s := c.current
	s.Run, s.Target, s.FenceJobs, s.Since = s.Target, "", 0, c.params.Now
	return c.put(s)
}

func (c *Command) read() Action { return c.enter(readingControl, Action{Kind: ReadControl}) }

func (c *Command) refuse(reason string) Action {
	return c.end(Action{Kind: Refusal, Reason: reason})
}

func (c *Command) end(a Action) Action { return c.enter(ended, a) }

func (c *Command) enter(p phase, a Action) Action {
	c.phase = p
	return a
}
