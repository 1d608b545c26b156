package control

// Run is the run state of a pipeline.
type Run string

// The run states.
const (
	Running   Run = "running"
	Stopped   Run = "stopped"
	Paused    Run = "paused"
	Completed Run = "completed"
	Fencing   Run = "fencing" // a command is taking the leases away; Target says what comes then
)

// Version is that of the encoding of a State.
const Version = 1

// State is the content of a control record: all that the workers must agree on.
type State struct {
	Version        int               `json:"version"`
	Incarnation    string            `json:"incarnation"` // 16 hex digits, drawn when the pipeline is created or reset
	Generation     uint64            `json:"generation"`  // from 1, grows with every command that changes spec, jobs or run state
	Run            Run               `json:"run"`
	Target         Run               `json:"target,omitempty"`     // while fencing: the run state that follows
	FenceJobs      int32             `json:"fence_jobs,omitempty"` // while fencing: ids 0..FenceJobs-1 have to be fenced
	Jobs           int32             `json:"jobs"`                 // number of jobs; while fencing that of the state that follows
	Spec           string            `json:"spec"`                 // normalised static spec as YAML, references unresolved
	DynamicVersion uint64            `json:"dynamic_version"`
	Dynamic        string            `json:"dynamic,omitempty"` // dynamic spec as YAML
	Topics         map[string]string `json:"topics,omitempty"`  // topic name to topic id, 32 hex digits
	Schemas        map[string]string `json:"schemas,omitempty"` // stream to its schema
	Lines          map[string]uint32 `json:"lines,omitempty"`   // swift stage to the number of its line
	Since          int64             `json:"since"`             // when this record was made, Unix milliseconds
	By             string            `json:"by,omitempty"`      // command that made it; unique, so that it knows its own record again
}
