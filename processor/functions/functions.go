// Package functions has the built-in process functions and the contract between a function and the runtime.
//
// A Function belongs to one job and is called by one goroutine at a time, so it may keep scratch memory, but nothing else
// between messages: whatever must survive is in its states.
package functions

import (
	"go.yaml.in/yaml/v3"

	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
)

// Message is one input row as a function sees it. It is valid until OnMessage returns.
type Message struct {
	Row        message.Row
	Key        []byte      // the encoded group_by_schema columns; nil without
	KeyRow     message.Row // their values
	ID         message.ID
	Stream     int // index into Config.Inputs
	EventTime  int64
	SystemTime int64
}

// Output takes what a function makes. An error of Emit must be returned by the function.
type Output interface {
	// Emit hands over one row of output stream (index into Config.Outputs) with the input's event time. The row is encoded before
	// Emit returns. Errors: a row that does not fit the stream's schema, a record that is too large.
	Emit(stream int, row message.Row) error
}

// States is access to the declared states of the current message's key; i is the index into Function.States. A failing
// message's changes are undone by the runtime.
type States interface {
	// Get returns the decoded object, or nil if the key has none. It must not be changed.
	Get(i int) (any, error)
	// Modify returns the object (Codec.New if the key has none) to be changed in place; it is written at the end of the epoch.
	Modify(i int) (any, error)
	// Delete removes the key's row.
	Delete(i int)
}

// Codec is how the objects of one state are kept.
type Codec interface {
	New() any
	Decode(b []byte) (any, error)
	// Append adds the object's encoding to dst. An empty encoding deletes the row.
	Append(dst []byte, obj any) ([]byte, error)
	// Copy makes dst (an earlier result of Copy, or nil) equal to src, sharing nothing with it, and returns it.
	Copy(dst, src any) any
	// Weight is the object's approximate size in memory, in bytes.
	Weight(obj any) int
	// Fingerprint names the encoding's schema.
	Fingerprint() uint64
}

// Shower is implemented by codecs that can show an object to people: Show returns what encoding/json can write.
type Shower interface{ Show(obj any) any }

// StateDecl declares one state of a function.
type StateDecl struct {
	Name  string
	Codec Codec
}

// Function is a process function.
type Function interface {
	// States lists the states that it uses. Stateless functions return nil.
	States() []StateDecl
	// Version changes whenever the function may give other results for the same input.
	Version() string
	OnMessage(m *Message, st States, out Output) error
}

// Stream is a named stream with its schema.
type Stream struct {
	Name   string
	Schema *message.Schema
}

// Config is what a function is built from.
type Config struct {
	Function   string
	File       string     // for positions in faults
	Path       string     // of process, for faults, such as computations.split.process; default process
	Node       *yaml.Node // of process, for faults without a better position
	Parameters *yaml.Node
	Inputs     []Stream
	Outputs    []Stream
	GroupBy    *message.Schema // nil without
}

// Fault is spec's.
type Fault = spec.Fault
