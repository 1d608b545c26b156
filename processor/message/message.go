// Package message has the values that flow through a pipeline and their encodings. It is the bottom of everything.
//
// Times are int64 microseconds since 1970, UTC. A Row belongs to whoever made it and is valid only until the step that was
// handed it returns, unless stated otherwise; the strings in it may point into a fetched batch, which is never written again.
package message

// Kind is the type of a column and of a Value.
type Kind uint8

// The column types of a spec; Null is a Value without a value.
const (
	Null   Kind = iota
	String      // any bytes
	Int64
	Uint64
	Double
	Boolean
	Timestamp // microseconds since 1970
	JSON      // a JSON document, kept as its text
)

// Value is one cell of a row.
type Value struct {
	Str  string // String, JSON
	Num  uint64 // the bits of Int64, Uint64, Double (math.Float64bits), Boolean (0, 1), Timestamp (int64)
	Kind Kind
}

// Row is one value for each column of a Schema.
type Row []Value

// Column is a named, typed column; Required forbids null.
type Column struct {
	Name     string
	Kind     Kind
	Required bool
}

// Schema is the ordered columns of a stream.
type Schema struct {
	Columns []Column
	index   map[string]int
	print   uint64
}

// ID names a message for ever. Origin partition and offset are those of the source record (swift) or the stage partition and
// its running number (transform); Ordinal numbers the children of one origin in the order in which they are made. Within one
// (Fingerprint, Partition) ids grow in the order of sending. See docs/formats.md for the bytes.
type ID struct {
	Fingerprint uint64
	Offset      uint64
	Ordinal     uint64
	Partition   uint32
}

// Envelope is the head of every internal record's value: see docs/formats.md.
type Envelope struct {
	ID          ID
	Swift       bool   // sent outside a transaction: the fields below say what came before it
	Start       bool   // nothing was handed to the producer before it in this attempt, from this origin for this target partition
	PrevOffset  uint64 // offset and ordinal of the predecessor, which has the same fingerprint and origin partition
	PrevOrdinal uint64
	EventTime   int64
	SystemTime  int64
	Schema      uint64 // fingerprint of the row's schema
}
