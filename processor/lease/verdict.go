package lease

// Verdict is what an error of a Kafka call means for the term.
type Verdict uint8

// The verdicts.
const (
	// OK: no error.
	OK Verdict = iota
	// Retry: nothing is broken; the same call may be repeated within its deadline. Fed to a Machine it says that the deadline
	// has passed, and ends the term as Fenced does.
	Retry
	// Fenced: the term is over and what was asked for has not been committed.
	Fenced
	// Unknown: the term is over, and only the job log can say whether the transaction was committed.
	Unknown
	// Refused: the term is over, nothing was committed, and the broker will refuse the same records again. The records' policy
	// (on_error) has to act; until it does the job is retried with a growing pause.
	Refused
	// Fatal: the term is over, nothing was committed, and this worker will get the same answer again (it may not, or cannot).
	Fatal
)

var verdictNames = [...]string{"ok", "retry", "fenced", "unknown", "refused", "fatal"}

// String names the verdict.
func (v Verdict) String() string { return name(verdictNames[:], uint8(v)) }

// Step is the call of a term that an error came from.
type Step uint8

// The steps of a term.
const (
	StepInit    Step = iota // InitProducerID
	StepRead                // fetches and listings: control, job log, changelog, inputs, committed offsets
	StepProduce             // records of a transaction, or of the idempotent producer
	StepOffsets             // AddOffsetsToTxn, TxnOffsetCommit
	StepEnd                 // EndTxn
	steps
)

var stepNames = [...]string{"init", "read", "produce", "offsets", "end"}

// String names the step.
func (s Step) String() string { return name(stepNames[:], uint8(s)) }

// Classify is the verdict on an error at a step.
func Classify(err error, step Step) Verdict { v, _ := Explain(err, step); return v }
