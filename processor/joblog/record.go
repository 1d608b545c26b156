package joblog

// Kind is what a record stands for.
type Kind uint8

// The kinds.
const (
	Acquired Kind = iota + 1 // a worker has taken the lease: first record of a term
	Epoch                    // an epoch: the transaction carries data
	Probe                    // the holder is alive, nothing else
	Fence                    // a command has taken the lease away
)

var kindNames = [...]string{"", "acquired", "epoch", "probe", "fence"}

// String names the kind.
func (k Kind) String() string {
	if k >= Acquired && k <= Fence {
		return kindNames[k]
	}
	return "unknown"
}

// Record is one record of a job log.
//
// A complete record says everything; acquired and fence records always are. One that is not says what has changed since the
// record before it in the same term: its Offsets, Watermarks and Ends replace entries of the same key, and an empty Worker
// means the same one. Troubles and Stats are whole in every record.
type Record struct {
	Kind        Kind
	Complete    bool
	Generation  uint64 // under which it was committed
	Term        uint64 // of the holder; a fence record repeats the last one
	EpochTerm   uint64 // (term, number) of the last epoch, in an epoch record its own; 0, 0 before the first
	EpochNumber uint64
	Worker      string // name of the worker, or of the command
	Job, Jobs   int32
	At          int64 // Unix milliseconds
	Offsets     []Offset
	Watermarks  []Watermark // as of the commit before this one
	Ends        []End       // as of the commit before this one
	Troubles    []Trouble
	Stats       []Stats
}

// Offset is the next offset of an input partition to be processed.
type Offset struct {
	Stage     string
	Topic     string
	TopicID   [16]byte
	Partition int32
	Offset    int64
}

// Watermark is that of one stage partition, in microseconds since 1970.
type Watermark struct {
	Stage     string
	Partition int32
	Event     int64
	System    int64
}

// End is the offset after the last record that the job wrote to an output partition.
type End struct {
	Topic     string
	TopicID   [16]byte
	Partition int32
	Offset    int64
}

// Trouble is a stage partition that is parked on a message which cannot be processed.
// Without a Stage it is the job itself that fails: its terms end before an epoch is committed, and Partition is the job.
type Trouble struct {
	Stage     string `json:"stage"`
	Partition int32  `json:"partition"` // of the stage
	Topic     string `json:"topic"`
	Offset    int64  `json:"offset"`
	Key       string `json:"key"`        // its first MaxKey bytes
	Cause     string `json:"cause"`      // its first MaxCause bytes
	Since     int64  `json:"since"`      // Unix milliseconds
	NextRetry int64  `json:"next_retry"` // Unix milliseconds
	Attempts  uint32 `json:"attempts"`
}

// Stats counts the records of a stage in this job since the term began.
type Stats struct {
	Stage      string `json:"stage"`
	In         uint64 `json:"in"`          // processed
	Out        uint64 `json:"out"`         // made
	Skipped    uint64 `json:"skipped"`     // dropped by skip_if or on_error: skip
	DeadLetter uint64 `json:"dead_letter"` // sent to a dead-letter stream
	Duplicates uint64 `json:"duplicates"`  // dropped by deduplication
	Gaps       uint64 `json:"gaps"`        // dropped behind a hole
	Foreign    uint64 `json:"foreign"`     // of another line
}

// Bounds of the texts in a Trouble, in bytes; longer ones are cut when encoded.
const (
	MaxKey   = 256
	MaxCause = 1024
)
