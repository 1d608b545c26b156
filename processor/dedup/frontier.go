package dedup

import (
	"github.com/kafka-processor/processor/processor/message"
)

// MaxOrigins bounds the partition numbers of an origin; an id beyond it is foreign.
const MaxOrigins = 1 << 18

// Verdict is what a Frontier says about a record.
type Verdict uint8

// The verdicts. All but Accept mean that the record is dropped and counted.
const (
	Accept    Verdict = iota // new: process it, then Advance
	Duplicate                // at or below the frontier
	Gap                      // its predecessor was not seen
	Foreign                  // of a fingerprint, such as an older line, that is not accepted
)

var verdictNames = [...]string{"accept", "duplicate", "gap", "foreign"}

// String names the verdict.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// Frontier is the compact input deduplication of one stage partition: for every accepted fingerprint and origin partition the
// highest id seen. It is not safe for concurrent use.
//
// Laws: an entry only grows, except by Undo; what AppendDirty handed out since the beginning, loaded in any order with the
// last value of each key, gives this frontier.
type Frontier struct {
	last    *run // of the last record: streams come in batches of one fingerprint
	runs    map[uint64]*run
	gone    []gone // what to delete at the next AppendDirty
	journal []step // what to undo, newest last
	logging bool   // a mark is set
	key     []byte
	value   []byte
}

// run is the frontier of one fingerprint.
type run struct {
	fingerprint uint64
	accepted    bool
	lanes       []lane   // by origin partition
	dirty       []uint64 // bit per group of lanes
}

type lane struct {
	offset, ordinal uint64
	seen            bool
}

// gone is a forgotten fingerprint and how many groups it had.
type gone struct {
	fingerprint uint64
	groups      uint32
}

type step struct {
	run    *run
	origin uint32
	before lane
}

// NewFrontier returns an empty frontier, to which every record is foreign.
func NewFrontier() *Frontier { return &Frontier{runs: map[uint64]*run{}} }

// KnownLine makes the records of this fingerprint known: only such are ever accepted.
func (f *Frontier) KnownLine(fingerprint uint64) { f.of(fingerprint).accepted = true }

// Forget drops a fingerprint and what was stored of it, such as that of an older line: the next AppendDirty deletes it.
func (f *Frontier) Forget(fingerprint uint64) {
	r := f.runs[fingerprint]
	if r == nil {
		return
	}
	f.last, f.journal, f.logging = nil, f.journal[:0], false
	delete(f.runs, fingerprint)
	f.gone = append(f.gone, gone{fingerprint, uint32(len(r.lanes) / GroupSize)})
}

// Lines calls each with every fingerprint that is known or was loaded, in no order.
func (f *Frontier) Lines(each func(fingerprint uint64, known bool)) {
	for p, r := range f.runs {
		each(p, r.accepted)
	}
}

// Check says what the record is; it changes nothing. It must be asked, and answered by Advance, in the order of the log, before
// any filter. Swift says that the record was sent outside a transaction and names its predecessor (prevOffset, prevOrdinal) or,
// with start, that there is none in its attempt; records of transactions have no holes.
func (f *Frontier) Check(id message.ID, swift, start bool, prevOffset, prevOrdinal uint64) Verdict {
	r := f.find(id.Fingerprint)
	if r == nil || !r.accepted || id.Partition >= MaxOrigins {
		return Foreign
	}
	var l lane
	if int(id.Partition) < len(r.lanes) {
		l = r.lanes[id.Partition]
	}
	switch {
	case l.seen && !below(l.offset, l.ordinal, id.Offset, id.Ordinal):
		return Duplicate
	case !swift || start:
		return Accept
	case !l.seen || below(l.offset, l.ordinal, prevOffset, prevOrdinal):
		return Gap
	}
	return Accept
}

// Advance moves the frontier to the id of a record that was accepted.
func (f *Frontier) Advance(id message.ID) {
	r := f.find(id.Fingerprint)
	if r == nil {
		r = f.of(id.Fingerprint)
	}
	r.reach(id.Partition)
	if f.logging {
		f.journal = append(f.journal, step{run: r, origin: id.Partition, before: r.lanes[id.Partition]})
	}
	r.set(id.Partition, lane{offset: id.Offset, ordinal: id.Ordinal, seen: true})
}

// Mark begins to note what Undo has to take back, and returns where. Marks nest.
func (f *Frontier) Mark() int {
	f.logging = true
	return len(f.journal)
}

// Undo takes back every Advance since the mark.
func (f *Frontier) Undo(mark int) {
	for i := len(f.journal) - 1; i >= mark; i-- {
		s := &f.journal[i]
		s.run.set(s.origin, s.before)
	}
	f.journal = f.journal[:mark]
}

// Release forgets all marks: what was advanced stays.
func (f *Frontier) Release() { f.journal, f.logging = f.journal[:0], false }

// find returns the run of a fingerprint, or nil.
func (f *Frontier) find(fingerprint uint64) *run {
	if f.last != nil && f.last.fingerprint == fingerprint {
		return f.last
	}
	r := f.runs[fingerprint]
	if r != nil {
		f.last = r
	}
	return r
}

// of returns the run of a fingerprint, made if it is not there.
func (f *Frontier) of(fingerprint uint64) *run {
	r := f.find(fingerprint)
	if r == nil {
		r = &run{fingerprint: fingerprint}
		f.runs[fingerprint] = r
	}
	return r
}

// reach makes room for an origin partition.
func (r *run) reach(origin uint32) {
	if int(origin) < len(r.lanes) {
		return
	}
	groups := int(origin)/GroupSize + 1
	lanes := make([]lane, max(groups*GroupSize, 2*len(r.lanes)))
	copy(lanes, r.lanes)
	r.lanes = lanes
	dirty := make([]uint64, (len(lanes)/GroupSize+63)/64)
	copy(dirty, r.dirty)
	r.dirty = dirty
}

func (r *run) set(origin uint32, l lane) {
	r.lanes[origin] = l
	group := origin / GroupSize
	r.dirty[group/64] |= 1 << (group % 64)
}
