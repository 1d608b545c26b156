package processor

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/processor/message"
)

// recordOverhead is what a record takes in a batch beside key and value, with the batch's own head, in bytes.
const recordOverhead = 128

// route is a Route made ready for a job.
type route struct {
	Route
	keys     *message.KeyEncoder
	json     *message.JSONEncoder
	text     int   // column of the text and raw formats
	targets  int32 // partitions of the topic
	limit    int   // bytes that one record may take
	swift    bool  // goes to the producer at once
	chain    int   // index into feed.chains, for swift routes
	envelope bool  // the record is an internal one
}

// pending is one output record of the message being processed. Its bytes are in the scratch buffer of the stage.
type pending struct {
	route     *route
	partition int32
	from      int // of key
	middle    int // end of key, begin of row or value
	to        int
	nullKey   bool
}

// node is a computation of a stage within a job.
type node struct {
	plan       *Node
	function   functions.Function
	routes     [][]route
	deadLetter []route
	out        nodeOutput
	in         functions.Message // for fused nodes
}

// nodeOutput is the functions.Output of one node.
type nodeOutput struct {
	stage *stageRun
	node  *node
}

// nodeError is an error with the computation that made it.
type nodeError struct {
	node *node
	err  error
}

func (e *nodeError) Error() string { return e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

// Emit is functions.Output's: it encodes the row for each of the stream's ways, or hands it to the fused computations.
func (o *nodeOutput) Emit(stream int, row message.Row) error {
	ways := o.node.routes[stream]
	for i := range ways {
		r := &ways[i]
		if r.Kind == ToNode {
			if err := o.stage.fuse(r, row); err != nil {
				return err
			}
			continue
		}
		if err := o.stage.encode(r, row); err != nil {
			return &nodeError{o.node, err}
		}
	}
	return nil
}

// fuse runs a computation behind this one within the same message.
func (s *stageRun) fuse(r *route, row message.Row) error {
	n := s.nodes[r.Node]
	n.in = functions.Message{Row: row, ID: s.id, Stream: r.Input, EventTime: s.eventTime, SystemTime: s.systemTime}
	err := n.function.OnMessage(&n.in, noStates{}, &n.out)
	if _, deeper := err.(*nodeError); err != nil && !deeper {
		return &nodeError{n, err}
	}
	return err
}

// noStates is what stateless computations get.
type noStates struct{}

func (noStates) Get(int) (any, error)    { return nil, errStateless }
func (noStates) Modify(int) (any, error) { return nil, errStateless }
func (noStates) Delete(int)              {}

var errStateless = fmt.Errorf("this computation has no state")

// encode adds a row to the message's pending records.
func (s *stageRun) encode(r *route, row message.Row) error {
	p := pending{route: r, from: len(s.scratch)}
	var err error
	if r.keys != nil {
		if s.scratch, p.nullKey, err = r.keys.Append(s.scratch, row); err != nil {
			return s.undoEncode(p, fmt.Errorf("key for topic %s: %w", r.Topic, err))
		}
	} else {
		p.nullKey = true
	}
	p.middle = len(s.scratch)
	switch {
	case r.envelope:
		s.scratch, err = message.AppendRow(s.scratch, r.Schema, row)
	case r.json != nil:
		s.scratch, err = r.json.Append(s.scratch, row)
	default:
		s.scratch = append(s.scratch, row[r.text].Str...)
	}
	if err != nil {
		return s.undoEncode(p, fmt.Errorf("row for topic %s: %w", r.Topic, err))
	}
	p.to = len(s.scratch)
	if size := p.to - p.from + recordOverhead; size > r.limit {
		return s.undoEncode(p, fmt.Errorf("a record of %d bytes is larger than topic %s takes (max.message.bytes=%d)", size, r.Topic, r.limit))
	}
	p.partition = s.target(r, p)
	s.pending = append(s.pending, p)
	return nil
}

func (s *stageRun) undoEncode(p pending, err error) error {
	s.scratch = s.scratch[:p.from]
	return err
}

// target is the partition of a record: by key as Kafka's own producers do; without a key an internal record goes to partition 0,
// another stays with the others of its stage partition, in order.
func (s *stageRun) target(r *route, p pending) int32 {
	switch {
	case !p.nullKey:
		return message.Partition(s.scratch[p.from:p.middle], r.targets)
	case r.Kind == ToStage && r.keys != nil:
		return 0
	}
	return s.part.number % r.targets
}

// rollbackOutput drops the pending records.
func (s *stageRun) rollbackOutput() {
	s.pending, s.scratch = s.pending[:0], s.scratch[:0]
}

// commitOutput gives the message's records their ids and hands them to the swift producer or to the open epoch.
func (s *stageRun) commitOutput(f *feed) {
	e := s.term.open
	for i := range s.pending {
		p := &s.pending[i]
		r := p.route
		var key []byte
		if !p.nullKey {
			key = e.arena.end(append(e.arena.begin(), s.scratch[p.from:p.middle]...))
		}
		value := e.arena.begin()
		if r.envelope {
			value = message.AppendEnvelope(value, s.envelope(f, p))
		}
		value = e.arena.end(append(value, s.scratch[p.middle:p.to]...))
		rec := e.record()
		rec.Topic, rec.Partition, rec.Key, rec.Value = r.Topic, p.partition, key, value
		rec.Timestamp = microTime(s.eventTime)
		if r.swift {
			s.term.sendSwift(e, rec)
		} else {
			e.outputs = append(e.outputs, rec)
		}
		s.stats.out++
	}
	s.rollbackOutput()
}

// envelope numbers an output: a swift stage's by its parent and the order among the parent's children, a transform's by the running
// number of its stage partition.
func (s *stageRun) envelope(f *feed, p *pending) *message.Envelope {
	v := &s.head
	*v = message.Envelope{EventTime: s.eventTime, SystemTime: s.systemTime, Schema: p.route.Schema.Fingerprint()}
	if s.plan.Swift {
		v.ID = s.id
		v.ID.Ordinal = s.ordinal
		s.ordinal++
	} else {
		v.ID = message.ID{Fingerprint: s.fingerprint, Partition: uint32(s.part.number), Offset: s.part.running}
		s.part.running++
	}
	if p.route.swift {
		v.Swift = true
		v.Start, v.PrevOffset, v.PrevOrdinal = f.chains[p.route.chain].Next(v.ID.Partition, p.partition, v.ID.Offset, v.ID.Ordinal)
	}
	return v
}

// emitDeadLetter makes the dead-letter record of a message.
func (s *stageRun) emitDeadLetter(n *node, f *feed, rec *kgo.Record, cause error, now int64) error {
	row := message.Row{
		printable(rec.Key), printable(rec.Value), message.StringValue(rec.Topic), message.Int64Value(int64(rec.Partition)),
		message.Int64Value(rec.Offset), message.StringValue(n.plan.Name), message.StringValue(cause.Error()), message.TimestampValue(now),
	}
	for i := range n.deadLetter {
		if err := s.encode(&n.deadLetter[i], row); err != nil {
			s.rollbackOutput()
			return fmt.Errorf("dead letter: %w", err)
		}
	}
	return nil
}

// printable keeps bytes that no JSON string can hold as base64.
func printable(b []byte) message.Value {
	switch {
	case b == nil:
		return message.NullValue()
	case utf8.Valid(b):
		return message.StringValue(string(b))
	}
	return message.StringValue("base64:" + base64.StdEncoding.EncodeToString(b))
}
