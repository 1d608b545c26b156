package lease

// EventKind says what happened.
type EventKind uint8

// The events. Those marked (answer) report the outcome of the action of that name and must be left out once DropTerm was
// handed out: Released then says that every pending call of the term has ended and that its outcome was thrown away.
const (
	Assigned          EventKind = iota + 1 // the group assigns the job to this worker
	ControlRead                            // (answer) to ReadControl: Generation, Running
	Initialized                            // (answer) to InitProducerID
	LogRead                                // (answer) to ReadLog: Generation, Running of control; LogGeneration, Term, EpochTerm, EpochNumber of the log
	AcquiredCommitted                      // (answer) to CommitAcquired
	Restored                               // (answer) to Restore
	Committed                              // the first epoch or probe of the term is committed; may be fed again for later ones
	Failed                                 // an action or the running job failed: Verdict, Reason; EpochNumber if an epoch's outcome is unknown
	PauseOver                              // the pause of AwaitHeartbeat is over
	Heartbeat                              // a heartbeat sent after the failure was answered and the job is still assigned
	Revoked                                // the group takes the job away, or the worker is shutting down
	ControlChanged                         // the worker now runs this: Generation, Running
	CannotRun                              // the worker lacks what the spec of control names: Reason
	Released                               // (answer) to DropTerm
)

// Event is one thing that happened. Fields which its kind does not name are zero.
type Event struct {
	Kind          EventKind
	Verdict       Verdict
	Running       bool   // control says "running"
	Generation    uint64 // of control
	LogGeneration uint64 // newest generation in the job log, 0 if the log is empty
	Term          uint64 // last term in the job log, 0 if the log is empty
	EpochTerm     uint64 // (term, number) of the last epoch in the job log
	EpochNumber   uint64
	Reason        string // the error's text
}

// ActionKind says what to do.
type ActionKind uint8

// The actions.
const (
	// None: go on with what the last action said.
	None ActionKind = iota
	// ReadControl: read control to its end and feed ControlRead.
	ReadControl
	// InitProducerID: make a fresh transactional client for this term, initialise its id, and feed Initialized.
	InitProducerID
	// ReadLog: read the job log up to its read-uncommitted end, control once more, and feed LogRead.
	ReadLog
	// CommitAcquired: commit an acquired record of Term, in the machine's generation, repeating (EpochTerm, EpochNumber) and
	// all else of the last complete record, and feed AcquiredCommitted.
	CommitAcquired
	// Restore: read the committed offsets, load state up to the bound, and feed Restored.
	Restore
	// Run: process.
	Run
	// AwaitHeartbeat: feed PauseOver after a pause that grows with Attempt, and Heartbeat for an answered heartbeat sent later
	// than the failure which still assigns the job. Both must come, in either order.
	AwaitHeartbeat
	// DropTerm: stop what is pending, close the term's clients, revoke its store handles, drop its memory; feed Released when
	// nothing of it is left. With Finish the open epoch may be finished and committed first, within the driver's deadline.
	// There may be nothing to drop.
	DropTerm
	// StandDown: do nothing for this job until Assigned or ControlChanged.
	StandDown
	// LeaveGroup: leave the group, so that the jobs go to others, and end with Reason as the error.
	LeaveGroup
)

// Doubt says what became of the epoch whose outcome was unknown.
type Doubt uint8

// The answers of the log about an epoch in doubt.
const (
	NoDoubt    Doubt = iota // no epoch was in doubt
	Counted                 // it was committed
	NotCounted              // it was not
	Overtaken               // a later term has committed since, so that the log no longer tells; nothing depends on it
)

// Action is the one thing to do next. Fields which its kind does not name are zero.
type Action struct {
	Kind        ActionKind
	Finish      bool   // DropTerm
	Doubt       Doubt  // CommitAcquired
	Attempt     uint32 // AwaitHeartbeat: failures in a row, from 1
	Term        uint64 // CommitAcquired, Restore, Run
	EpochTerm   uint64 // CommitAcquired, Restore: last committed epoch
	EpochNumber uint64
	Reason      string // AwaitHeartbeat, DropTerm, StandDown, LeaveGroup: for status and log
}

var eventNames = [...]string{"nothing", "assigned", "control read", "initialized", "log read", "acquired committed", "restored", "committed",
	"failed", "pause over", "heartbeat", "revoked", "control changed", "cannot run", "released"}

// String names the kind.
func (k EventKind) String() string { return name(eventNames[:], uint8(k)) }

var actionNames = [...]string{"none", "read control", "initialize producer id", "read log", "commit acquired", "restore", "run",
	"await heartbeat", "drop term", "stand down", "leave group"}

// String names the kind.
func (k ActionKind) String() string { return name(actionNames[:], uint8(k)) }

var doubtNames = [...]string{"no doubt", "counted", "not counted", "overtaken"}

// String names the doubt.
func (d Doubt) String() string { return name(doubtNames[:], uint8(d)) }

func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "unknown"
}
