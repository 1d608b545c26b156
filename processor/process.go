package processor

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/processor/dedup"
	"github.com/kafka-processor/processor/processor/functions"
	"github.com/kafka-processor/processor/processor/message"
)

// sliceRecords is how many records are decoded, and their state loaded, at a time.
const sliceRecords = 512

// stageRun is a stage within one term of a job. It belongs to the job's goroutine.
type stageRun struct {
	term        *term
	plan        *Stage
	nodes       []*node
	parts       []*part
	decoders    []*message.JSONDecoder // by input
	groupKeys   []*message.KeyEncoder  // by input
	fingerprint uint64                 // of a transform's outputs
	swiftRoutes []int32                // partitions of each swift route's topic
	limit       int                    // bytes of a changelog record

	stats   stageStats
	scratch []byte
	pending []pending
	head    message.Envelope
	slots   []slot
	values  []message.Value
	keyBuf  []byte
	keys    [][]byte
	keyRow  message.Row

	// Of the message being processed.
	in         functions.Message
	part       *part
	id         message.ID
	ordinal    uint64
	eventTime  int64
	systemTime int64
}

type stageStats struct{ in, out, skipped, deadLetter, duplicates, gaps, foreign uint64 }

// part is one partition of a stage.
type part struct {
	stage    *stageRun
	number   int32
	feeds    []*feed
	state    *partitionState // nil without
	running  uint64          // next number of a transform's outputs
	numbered uint64          // running at the last seal
	parked   *parked
	hole     *hole
}

// slot is one decoded record of a slice.
type slot struct {
	rec      *kgo.Record
	envelope message.Envelope
	row      message.Row
	key      []byte
	err      error
}

// process works on the next records of a feed and tells how many it took and how many bytes they hold. It stops behind a
// message that parks the partition.
func (s *stageRun) process(f *feed) (records int, bytes int64, err error) {
	recs := f.slice(sliceRecords)
	s.decode(f, recs)
	p := f.part
	s.part = p
	if p.state != nil && s.plan.GroupBy != nil {
		if err := p.state.load(s.keys); errors.Is(err, errRow) {
			s.park(f, &s.slots[0], s.nodes[0], p.attempts(f, s.slots[0].rec.Offset), err)
			return 0, 0, nil
		} else if err != nil {
			return 0, 0, fmt.Errorf("stage %s partition %d: %w", s.plan.Name, p.number, err)
		}
	}
	before := s.term.open.size()
	for i := range s.slots {
		if !s.message(f, &s.slots[i]) {
			break
		}
		records++
		s.term.job.progress.Add(1)
	}
	f.took(records)
	if p.state != nil {
		p.state.turn()
	}
	return records, s.term.open.size() - before, nil
}

// decode fills the slots; what is wrong with a record is kept in its slot until its turn comes.
func (s *stageRun) decode(f *feed, recs []*kgo.Record) {
	s.slots, s.values, s.keyBuf, s.keys = s.slots[:0], s.values[:0], s.keyBuf[:0], s.keys[:0]
	columns := len(f.input.Schema.Columns)
	if need := columns * len(recs); cap(s.values) < need {
		s.values = make([]message.Value, 0, need)
	}
	for i, rec := range recs {
		sl := slot{rec: rec}
		from := i * columns
		dst := message.Row(s.values[from:from:min(from+columns, cap(s.values))])
		if f.input.Internal() {
			sl.row, sl.err = s.decodeInternal(f, &sl, dst)
		} else {
			sl.row, sl.err = s.decodeSource(f, &sl, dst)
		}
		if sl.err == nil && s.groupKeys != nil {
			sl.err = s.decodeKey(f, &sl)
		}
		s.slots = append(s.slots, sl)
		s.keys = append(s.keys, sl.key)
	}
}

func (s *stageRun) decodeInternal(f *feed, sl *slot, dst message.Row) (message.Row, error) {
	rest, err := message.DecodeEnvelope(sl.rec.Value, &sl.envelope)
	if err != nil {
		return nil, err
	}
	if sl.envelope.Schema != f.input.Schema.Fingerprint() {
		return nil, fmt.Errorf("the record was written with schema %016x, stream %s has %016x", sl.envelope.Schema, f.input.Stream, f.input.Schema.Fingerprint())
	}
	return message.DecodeRow(dst, f.input.Schema, rest)
}

func (s *stageRun) decodeSource(f *feed, sl *slot, dst message.Row) (message.Row, error) {
	millis := sl.rec.Timestamp.UnixMilli()
	sl.envelope = message.Envelope{ID: message.ID{Fingerprint: f.fingerprint, Partition: uint32(f.tp.Partition), Offset: uint64(sl.rec.Offset)}, EventTime: millis * 1000, SystemTime: millis * 1000}
	if sl.rec.Value == nil { // a tombstone is a row of nulls
		for _, c := range f.input.Schema.Columns {
			if c.Required {
				return nil, fmt.Errorf("column %s is required, the record has no value", c.Name)
			}
			dst = append(dst, message.NullValue())
		}
		return dst, nil
	}
	if d := s.decoders[f.input.Index]; d != nil {
		return d.Decode(dst, sl.rec.Value)
	}
	return append(dst, message.BytesValue(sl.rec.Value)), nil
}

func (s *stageRun) decodeKey(f *feed, sl *slot) error {
	from := len(s.keyBuf)
	var null bool
	var err error
	if s.keyBuf, null, err = s.groupKeys[f.input.Index].Append(s.keyBuf, sl.row); err != nil {
		return fmt.Errorf("group key: %w", err)
	}
	sl.key = s.keyBuf[from:len(s.keyBuf):len(s.keyBuf)]
	if f.input.PartitionedBy {
		n := s.term.partitions(f.tp.Topic)
		if want := message.Partition(sl.key, n); null || want != f.tp.Partition {
			return fmt.Errorf("the source says partitioned_by, but key %q belongs in partition %d of %d, not in %d: state would be split", sl.key, want, n, f.tp.Partition)
		}
	}
	return nil
}

// message takes one record through deduplication, the function and its effects. It returns false if the record stays: the
// partition is parked before it.
func (s *stageRun) message(f *feed, sl *slot) bool {
	p := f.part
	e := &sl.envelope
	if f.input.Internal() && e.ID.Fingerprint != 0 {
		switch f.frontier.Check(e.ID, e.Swift, e.Start, e.PrevOffset, e.PrevOrdinal) {
		case dedup.Duplicate:
			s.stats.duplicates++
			return true
		case dedup.Foreign:
			s.stats.foreign++
			return true
		case dedup.Gap:
			s.stats.gaps++
			p.gap(f, e, sl.rec.Offset)
			return true
		}
	}
	s.id, s.ordinal, s.eventTime, s.systemTime = e.ID, 0, e.EventTime, e.SystemTime
	err := sl.err
	if err == nil {
		err = s.call(f, sl)
	}
	if err != nil && !s.failed(f, sl, err) {
		return false
	}
	s.commitOutput(f)
	if f.input.Internal() && e.ID.Fingerprint != 0 {
		f.frontier.Advance(e.ID)
		p.heal(e.ID)
	}
	s.stats.in++
	if k := p.parked; k != nil && k.topic == f.tp.Topic && k.offset <= sl.rec.Offset {
		p.parked = nil
		s.term.troubled.Store(true)
	}
	return true
}

// call runs the head's function; an error leaves no trace of the message.
func (s *stageRun) call(f *feed, sl *slot) error {
	p, n := f.part, s.nodes[0]
	m := &s.in
	*m = functions.Message{Row: sl.row, Key: sl.key, ID: sl.envelope.ID, Stream: f.input.Index, EventTime: s.eventTime, SystemTime: s.systemTime}
	if sl.key != nil {
		s.keyRow = s.keyRow[:0]
		for _, c := range f.input.GroupColumns {
			s.keyRow = append(s.keyRow, sl.row[c])
		}
		m.KeyRow = s.keyRow
	}
	var states functions.States = noStates{}
	if p.state != nil && sl.key != nil {
		p.state.begin(sl.key)
		states = p.state
	}
	err := n.function.OnMessage(m, states, &n.out)
	if err == nil && p.state != nil && sl.key != nil {
		err = p.state.oversize(s.limit)
	}
	if err != nil {
		s.rollbackOutput()
		s.ordinal = 0
		if p.state != nil && sl.key != nil {
			p.state.rollback()
		}
	}
	return err
}

// failed applies the policy of the computation that failed. It returns true if the message is done with.
func (s *stageRun) failed(f *feed, sl *slot, err error) bool {
	n := s.nodes[0]
	var ne *nodeError
	if errors.As(err, &ne) {
		n = ne.node
	}
	policy := n.plan.Computation.OnError
	attempts := f.part.attempts(f, sl.rec.Offset)
	if policy.Policy == "fail" || attempts < uint32(max(policy.MaxAttempts, 1)) {
		s.park(f, sl, n, attempts, err)
		return false
	}
	if policy.Policy == "dead_letter" {
		if dlErr := s.emitDeadLetter(n, f, sl.rec, err, time.Now().UnixMicro()); dlErr != nil {
			s.park(f, sl, n, attempts, errors.Join(err, dlErr))
			return false
		}
		s.stats.deadLetter++
	} else {
		s.stats.skipped++
	}
	s.term.job.log.Warn("message not processed", "policy", policy.Policy, "computation", n.plan.Name, "topic", f.tp.Topic, "partition", f.tp.Partition, "offset", sl.rec.Offset, "error", err)
	return true
}

// attempts is how often a message has been tried, this time included.
func (p *part) attempts(f *feed, offset int64) uint32 {
	if p.parked != nil && p.parked.topic == f.tp.Topic && p.parked.offset == offset {
		return p.parked.attempts + 1
	}
	return 1
}

// park keeps the partition before a message, to be tried again later.
func (s *stageRun) park(f *feed, sl *slot, n *node, attempts uint32, err error) {
	now := time.Now()
	since := now
	if f.part.parked != nil {
		since = f.part.parked.since
	}
	wait := pauseAfter(time.Duration(n.plan.Computation.OnError.Pause), attempts)
	f.part.parked = &parked{attempts: attempts, since: since, until: now.Add(wait), offset: sl.rec.Offset, topic: f.tp.Topic,
		key: string(sl.rec.Key), cause: fmt.Sprintf("%s: %v", n.plan.Name, err)}
	s.term.troubled.Store(true)
	if attempts == 1 {
		s.term.job.log.Error("partition parked", "stage", s.plan.Name, "partition", f.part.number, "topic", f.tp.Topic, "offset", sl.rec.Offset, "error", err)
	}
}

func microTime(micros int64) time.Time { return time.UnixMicro(micros) }
