package lease

import "fmt"

// phase is where the machine stands: it names the answer that is awaited.
type phase uint8

const (
	idle phase = iota // stood down, or never assigned
	readingControl
	initializing
	readingLog
	acquiring
	restoring
	running
	dropping // DropTerm is out, Released is awaited
	awaiting // AwaitHeartbeat is out
	left     // LeaveGroup was said: the end
)

var phaseNames = [...]string{"idle", "reading control", "initializing", "reading log", "acquiring", "restoring", "running", "dropping",
	"awaiting heartbeat", "left"}

// Machine is the lease of one job at one worker. It is a plain value: a copy is a snapshot. It is not safe for concurrent use.
type Machine struct {
	job         int32
	phase       phase
	assigned    bool   // by the group, as far as told
	runs        bool   // control says running, as of generation
	failed      bool   // the term that is being dropped failed: the next try waits for a heartbeat
	pauseOver   bool   // in awaiting
	heartbeat   bool   // in awaiting
	inDoubt     bool   // the outcome of epoch (doubtTerm, doubtNumber) is unknown
	attempt     uint32 // failures since something was last committed
	generation  uint64 // of the spec that this worker runs; only grows
	seen        uint64 // newest generation that a reading showed; above generation until ControlChanged brings it
	term        uint64 // that is being acquired or held; 0 if none
	doubtTerm   uint64
	doubtNumber uint64
	epochTerm   uint64 // last epoch in the log, as read in this acquisition
	epochNumber uint64
	stand       cause  // why to stand down once the term is dropped
	leave       string // why to leave the group once the term is dropped
	reason      string // of the last failure
}

// cause is why a machine stands down.
type cause uint8

const (
	standNot cause = iota
	standNewer
	standOlder
	standStopped
	standLog
)

// New returns the machine of a job at a worker that runs this generation of the spec, which control said is running.
func New(job int32, generation uint64) Machine {
	return Machine{job: job, generation: generation, seen: generation, runs: true}
}

// Job is the number of the job.
func (m *Machine) Job() int32 { return m.job }

// Term is the term that is being acquired or held, 0 if none.
func (m *Machine) Term() uint64 { return m.term }

// Generation is that of the spec under which the machine acquires.
func (m *Machine) Generation() uint64 { return m.generation }

// Phase names where the machine stands, for status.
func (m *Machine) Phase() string { return name(phaseNames[:], uint8(m.phase)) }

// Step takes one event and says what to do next. Events that do not belong to the phase are answered with None.
func (m *Machine) Step(e Event) Action {
	switch e.Kind {
	case Assigned:
		return m.onAssigned()
	case Revoked:
		return m.onRevoked()
	case ControlChanged:
		return m.onControlChanged(e)
	case CannotRun:
		return m.onCannotRun(e)
	case Failed:
		return m.onFailed(e)
	case Released:
		if m.phase == dropping {
			return m.onReleased()
		}
	case PauseOver, Heartbeat:
		if m.phase == awaiting {
			return m.onAwaited(e.Kind)
		}
	default:
		return m.onAnswer(e)
	}
	return Action{}
}

// onAnswer moves an acquisition one step on, if the answer is the awaited one.
func (m *Machine) onAnswer(e Event) Action {
	switch {
	case e.Kind == ControlRead && m.phase == readingControl:
		if why := m.judge(e); why != standNot {
			m.stand = why
			return m.standDown()
		}
		return m.enter(initializing, Action{Kind: InitProducerID})
	case e.Kind == Initialized && m.phase == initializing:
		return m.enter(readingLog, Action{Kind: ReadLog})
	case e.Kind == LogRead && m.phase == readingLog:
		return m.onLogRead(e)
	case e.Kind == AcquiredCommitted && m.phase == acquiring:
		return m.enter(restoring, Action{Kind: Restore, Term: m.term, EpochTerm: m.epochTerm, EpochNumber: m.epochNumber})
	case e.Kind == Restored && m.phase == restoring:
		return m.enter(running, Action{Kind: Run, Term: m.term})
	case e.Kind == Committed && m.phase == running:
		// Not earlier: an acquisition that succeeds and then fails at its first epoch, again and again, must slow down too.
		m.attempt = 0
	}
	return Action{}
}

// judge compares a reading of control with what the worker runs.
func (m *Machine) judge(e Event) cause {
	m.seen = max(m.seen, e.Generation)
	switch {
	case e.Generation > m.generation:
		return standNewer
	case e.Generation < m.generation:
		return standOlder
	case !e.Running:
		return standStopped
	}
	return standNot
}

func (m *Machine) onLogRead(e Event) Action {
	why := m.judge(e)
	if why == standNot && e.LogGeneration > m.generation {
		m.seen = max(m.seen, e.LogGeneration)
		why = standLog
	}
	if why != standNot {
		m.stand = why
		return m.drop(false, m.standReason())
	}
	a := Action{Kind: CommitAcquired, Doubt: m.resolve(e), Term: e.Term + 1, EpochTerm: e.EpochTerm, EpochNumber: e.EpochNumber}
	m.term, m.epochTerm, m.epochNumber = a.Term, a.EpochTerm, a.EpochNumber
	return m.enter(acquiring, a)
}

// resolve says what became of the epoch in doubt, now that the log was read after fencing.
func (m *Machine) resolve(e Event) Doubt {
	if !m.inDoubt {
		return NoDoubt
	}
	m.inDoubt = false
	switch {
	case e.EpochTerm > m.doubtTerm:
		return Overtaken
	case e.EpochTerm == m.doubtTerm && e.EpochNumber >= m.doubtNumber:
		return Counted
	}
	return NotCounted
}

func (m *Machine) onAssigned() Action {
	m.assigned = true
	if m.phase != idle {
		return Action{}
	}
	return m.next()
}

func (m *Machine) onRevoked() Action {
	m.assigned = false
	switch m.phase {
	case idle, awaiting:
		m.failed, m.attempt = false, 0
		return m.standDown()
	case left, dropping:
		return Action{}
	}
	return m.drop(m.phase == running, "the job was taken away")
}

func (m *Machine) onControlChanged(e Event) Action {
	if e.Generation < m.generation {
		return Action{}
	}
	same := e.Generation == m.generation && e.Running == m.runs
	m.generation, m.runs = e.Generation, e.Running
	m.seen = max(m.seen, e.Generation)
	m.stand = standNot
	switch m.phase {
	case idle:
		return m.next()
	case awaiting:
		if m.runs {
			return Action{} // the pause goes on; the next reading is under the new generation
		}
		return m.standDown()
	case left, dropping:
		return Action{}
	}
	if same {
		return Action{}
	}
	return m.drop(false, fmt.Sprintf("control changed to generation %d", e.Generation))
}

func (m *Machine) onCannotRun(e Event) Action {
	if m.phase == left {
		return Action{}
	}
	m.leave = e.Reason
	switch m.phase {
	case dropping:
		return Action{}
	case idle, awaiting:
		return m.next()
	}
	return m.drop(false, e.Reason)
}

func (m *Machine) onFailed(e Event) Action {
	switch m.phase {
	case idle, awaiting, dropping, left:
		return Action{}
	case running:
		// Epoch numbers start at 1; without a number it was a probe, about which nobody needs to know.
		if e.Verdict == Unknown && e.EpochNumber > 0 {
			m.inDoubt, m.doubtTerm, m.doubtNumber = true, m.term, e.EpochNumber
		}
	}
	if e.Verdict == Fatal {
		m.leave = e.Reason
	}
	m.failed, m.reason = true, e.Reason
	if m.attempt < maxAttempt {
		m.attempt++
	}
	return m.drop(false, e.Reason)
}

// maxAttempt keeps the counter, and with it the pauses of a driver that doubles them, bounded.
const maxAttempt = 32

// drop ends the term, whatever its phase.
func (m *Machine) drop(finish bool, reason string) Action {
	m.term = 0
	return m.enter(dropping, Action{Kind: DropTerm, Finish: finish, Reason: reason})
}

// onReleased decides what follows a dropped term.
func (m *Machine) onReleased() Action {
	m.phase = idle
	return m.next()
}

// next decides, with nothing held, what to do.
func (m *Machine) next() Action {
	switch {
	case m.leave != "":
		return m.enter(left, Action{Kind: LeaveGroup, Reason: m.leave})
	case !m.assigned || !m.runs || m.stand != standNot:
		m.failed = false
		if !m.assigned {
			m.attempt = 0
		}
		return m.standDown()
	case m.failed:
		m.failed, m.pauseOver, m.heartbeat = false, false, false
		return m.enter(awaiting, Action{Kind: AwaitHeartbeat, Attempt: m.attempt, Reason: m.reason})
	}
	return m.enter(readingControl, Action{Kind: ReadControl})
}

func (m *Machine) onAwaited(k EventKind) Action {
	if k == PauseOver {
		m.pauseOver = true
	} else {
		m.heartbeat = true
	}
	if m.pauseOver && m.heartbeat {
		return m.next()
	}
	return Action{}
}

func (m *Machine) standDown() Action {
	a := Action{Kind: StandDown, Reason: m.standReason()}
	m.stand = standNot // Assigned or ControlChanged begin anew
	return m.enter(idle, a)
}

func (m *Machine) standReason() string {
	switch {
	case !m.assigned:
		return "the job is not assigned to this worker"
	case m.stand == standNewer:
		return fmt.Sprintf("control holds generation %d, this worker runs %d", m.seen, m.generation)
	case m.stand == standOlder:
		return fmt.Sprintf("control holds an older generation than %d, which this worker runs", m.generation)
	case m.stand == standLog:
		return fmt.Sprintf("the job log knows generation %d, this worker runs %d", m.seen, m.generation)
	}
	return fmt.Sprintf("generation %d is not running", m.generation)
}

func (m *Machine) enter(p phase, a Action) Action {
	m.phase = p
	return a
}
