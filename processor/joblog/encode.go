package joblog

import (
	"encoding/binary"
	"unicode/utf8"
)

// version is the first byte of a record.
const version = 1

const flagComplete = 1

// Encoder encodes records. The zero value is ready; it keeps its memory from one record to the next.
type Encoder struct {
	topics map[topic]uint64
	stages map[string]uint64
	names  []string // stages in order of appearance
	ids    []topic
	body   []byte
}

// topic is an entry of a record's dictionary.
type topic struct {
	name string
	id   [16]byte
}

// Append encodes the record behind dst.
func (e *Encoder) Append(dst []byte, r *Record) []byte {
	e.reset()
	e.entries(r)
	flags := byte(0)
	if r.Complete {
		flags |= flagComplete
	}
	b := append(dst, version, byte(r.Kind), flags)
	for _, v := range [...]uint64{r.Generation, r.Term, r.EpochTerm, r.EpochNumber, uint64(uint32(r.Job)), uint64(uint32(r.Jobs))} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendVarint(b, r.At)
	b = appendString(b, r.Worker)
	b = binary.AppendUvarint(b, uint64(len(e.names)))
	for _, s := range e.names {
		b = appendString(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(e.ids)))
	for _, t := range e.ids {
		b = appendString(b, t.name)
		if t.id == ([16]byte{}) {
			b = append(b, 0)
			continue
		}
		b = append(append(b, 1), t.id[:]...)
	}
	return append(b, e.body...)
}

// Encode is Append into a new slice.
func Encode(r *Record) []byte { return new(Encoder).Append(nil, r) }

func (e *Encoder) reset() {
	if e.topics == nil {
		e.topics, e.stages = map[topic]uint64{}, map[string]uint64{}
	}
	clear(e.topics)
	clear(e.stages)
	e.names, e.ids, e.body = e.names[:0], e.ids[:0], e.body[:0]
}

// entries encodes the lists into body and fills the dictionaries.
func (e *Encoder) entries(r *Record) {
	e.number(uint64(len(r.Offsets)))
	for i := range r.Offsets {
		o := &r.Offsets[i]
		e.number(e.stage(o.Stage), e.topic(o.Topic, o.TopicID), uint64(uint32(o.Partition)))
		e.signed(o.Offset)
	}
	e.number(uint64(len(r.Watermarks)))
	for i := range r.Watermarks {
		w := &r.Watermarks[i]
		e.number(e.stage(w.Stage), uint64(uint32(w.Partition)))
		e.signed(w.Event, w.System)
	}
	e.number(uint64(len(r.Ends)))
	for i := range r.Ends {
		o := &r.Ends[i]
		e.number(e.topic(o.Topic, o.TopicID), uint64(uint32(o.Partition)))
		e.signed(o.Offset)
	}
	e.number(uint64(len(r.Troubles)))
	for i := range r.Troubles {
		e.trouble(&r.Troubles[i])
	}
	e.number(uint64(len(r.Stats)))
	for i := range r.Stats {
		s := &r.Stats[i]
		e.number(e.stage(s.Stage), s.In, s.Out, s.Skipped, s.DeadLetter, s.Duplicates, s.Gaps, s.Foreign)
	}
}

func (e *Encoder) trouble(t *Trouble) {
	e.number(e.stage(t.Stage), uint64(uint32(t.Partition)), e.topic(t.Topic, [16]byte{}))
	e.signed(t.Offset)
	e.body = appendString(e.body, t.Key[:min(len(t.Key), MaxKey)])
	e.body = appendString(e.body, cut(t.Cause, MaxCause))
	e.signed(t.Since, t.NextRetry)
	e.number(uint64(t.Attempts))
}

func (e *Encoder) number(values ...uint64) {
	for _, v := range values {
		e.body = binary.AppendUvarint(e.body, v)
	}
}

func (e *Encoder) signed(values ...int64) {
	for _, v := range values {
		e.body = binary.AppendVarint(e.body, v)
	}
}

func (e *Encoder) stage(s string) uint64 {
	i, ok := e.stages[s]
	if !ok {
		i = uint64(len(e.names))
		e.stages[s], e.names = i, append(e.names, s)
	}
	return i
}

func (e *Encoder) topic(name string, id [16]byte) uint64 {
	t := topic{name, id}
	i, ok := e.topics[t]
	if !ok {
		i = uint64(len(e.ids))
		e.topics[t], e.ids = i, append(e.ids, t)
	}
	return i
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cut shortens a text to at most n bytes without cutting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
