package joblog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrupt is wrapped by the error of a record that cannot be decoded.
var ErrCorrupt = errors.New("corrupt job log record")

// Decode reads what an Encoder wrote. It refuses other versions, what is cut short and what is left over. The record does not
// refer to b.
func Decode(b []byte) (Record, error) {
	d := decoder{b: b}
	r := d.record()
	if d.err == nil && len(d.b) > 0 {
		d.fail("bytes left over")
	}
	if d.err != nil {
		return Record{}, fmt.Errorf("%w at byte %d of %d: %w", ErrCorrupt, len(b)-len(d.b), len(b), d.err)
	}
	return r, nil
}

// decoder remembers the first fault; after it everything reads as zero.
type decoder struct {
	b      []byte
	err    error
	stages []string
	topics []topic
}

func (d *decoder) record() (r Record) {
	if v := d.byte(); v != version && d.err == nil {
		d.fail(fmt.Sprintf("version %d, this program knows %d", v, version))
	}
	r.Kind = Kind(d.byte())
	flags := d.byte()
	if d.err == nil && (r.Kind < Acquired || r.Kind > Fence || flags > flagComplete) {
		d.fail(fmt.Sprintf("kind %d, flags %#x", r.Kind, flags))
	}
	r.Complete = flags&flagComplete != 0
	if d.err == nil && !r.Complete && (r.Kind == Acquired || r.Kind == Fence) {
		d.fail(fmt.Sprintf("%s record is not complete", r.Kind))
	}
	r.Generation, r.Term, r.EpochTerm, r.EpochNumber = d.number(), d.number(), d.number(), d.number()
	r.Job, r.Jobs = d.int32(), d.int32()
	r.At = d.signed()
	r.Worker = d.string()
	d.stages = list(d, 1, (*decoder).string)
	d.topics = list(d, 2, (*decoder).entry)
	r.Offsets = list(d, 4, (*decoder).offset)
	r.Watermarks = list(d, 4, (*decoder).watermark)
	r.Ends = list(d, 3, (*decoder).end)
	r.Troubles = list(d, 9, (*decoder).trouble)
	r.Stats = list(d, 8, (*decoder).stats)
	return r
}

// list reads a count and so many items of at least size bytes each; the size bounds what a corrupt count can allocate.
func list[T any](d *decoder, size int, item func(*decoder) T) []T {
	n := d.number()
	if n > uint64(len(d.b)/size) {
		d.fail(fmt.Sprintf("list of %d items", n))
	}
	if d.err != nil || n == 0 {
		return nil
	}
	items := make([]T, 0, n)
	for range n {
		items = append(items, item(d))
	}
	return items
}

func (d *decoder) entry() (t topic) {
	t.name = d.string()
	switch d.byte() {
	case 0:
	case 1:
		copy(t.id[:], d.bytes(16))
	default:
		d.fail("topic id flag")
	}
	return t
}

func (d *decoder) offset() Offset {
	s, t := d.stage(), d.topic()
	return Offset{Stage: s, Topic: t.name, TopicID: t.id, Partition: d.int32(), Offset: d.signed()}
}

func (d *decoder) watermark() Watermark {
	return Watermark{Stage: d.stage(), Partition: d.int32(), Event: d.signed(), System: d.signed()}
}

func (d *decoder) end() End {
	t := d.topic()
	return End{Topic: t.name, TopicID: t.id, Partition: d.int32(), Offset: d.signed()}
}

func (d *decoder) trouble() Trouble {
	t := Trouble{Stage: d.stage(), Partition: d.int32(), Topic: d.topic().name, Offset: d.signed(), Key: d.string(), Cause: d.string(),
		Since: d.signed(), NextRetry: d.signed()}
	n := d.number()
	if n > math.MaxUint32 || len(t.Key) > MaxKey || len(t.Cause) > MaxCause {
		d.fail("trouble out of bounds")
	}
	t.Attempts = uint32(n)
	return t
}

func (d *decoder) stats() Stats {
	return Stats{Stage: d.stage(), In: d.number(), Out: d.number(), Skipped: d.number(), DeadLetter: d.number(), Duplicates: d.number(),
		Gaps: d.number(), Foreign: d.number()}
}

func (d *decoder) stage() string {
	i := d.number()
	if i >= uint64(len(d.stages)) {
		d.fail(fmt.Sprintf("stage %d of %d", i, len(d.stages)))
		return ""
	}
	return d.stages[i]
}

func (d *decoder) topic() topic {
	i := d.number()
	if i >= uint64(len(d.topics)) {
		d.fail(fmt.Sprintf("topic %d of %d", i, len(d.topics)))
		return topic{}
	}
	return d.topics[i]
}

func (d *decoder) int32() int32 {
	v := d.number()
	if v > math.MaxInt32 {
		d.fail(fmt.Sprintf("%d is no 31-bit number", v))
	}
	return int32(v)
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	return v & d.take(n)
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.b)
	return int64(uint64(v) & d.take(n))
}

// take drops the n bytes of an integer and returns a mask: nothing of it if it was cut short or longer than need be.
func (d *decoder) take(n int) uint64 {
	if n <= 0 || n > 1 && d.b[n-1] == 0 {
		d.fail("bad integer")
		return 0
	}
	d.b = d.b[n:]
	return math.MaxUint64
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) string() string {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.fail(fmt.Sprintf("text of %d bytes", n))
		return ""
	}
	return string(d.bytes(int(n)))
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail("cut short")
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

// fail keeps the first fault and makes every further read empty.
func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = errors.New(what)
	}
}
