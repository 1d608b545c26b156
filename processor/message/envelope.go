package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	envelopeVersion = 1
	flagSwift       = 1 << 0
	flagStart       = 1 << 1
)

var (
	// ErrVersion marks bytes of a format version that this program does not know.
	ErrVersion = errors.New("unknown format version")
	// ErrEnvelope marks bytes that are no envelope.
	ErrEnvelope = errors.New("not an envelope")
)

// AppendEnvelope appends the envelope's bytes, see docs/formats.md. Start is kept only if Swift is set, the predecessor only if
// Swift is set and Start is not; other envelopes have none.
func AppendEnvelope(dst []byte, e *Envelope) []byte {
	flags := byte(0)
	if e.Swift {
		flags = flagSwift
		if e.Start {
			flags |= flagStart
		}
	}
	dst = append(dst, envelopeVersion, flags)
	dst = binary.LittleEndian.AppendUint64(dst, e.Schema)
	dst = binary.LittleEndian.AppendUint64(dst, e.ID.Fingerprint)
	dst = binary.AppendUvarint(dst, uint64(e.ID.Partition))
	dst = binary.AppendUvarint(dst, e.ID.Offset)
	dst = binary.AppendUvarint(dst, e.ID.Ordinal)
	dst = binary.AppendUvarint(dst, zigzag(e.EventTime))
	dst = binary.AppendUvarint(dst, zigzag(e.SystemTime-e.EventTime))
	if flags != flagSwift {
		return dst
	}
	// Differences wrap around, so that any predecessor can be written; a right one is small.
	back := e.ID.Offset - e.PrevOffset
	dst = binary.AppendUvarint(dst, back)
	if back == 0 {
		return binary.AppendUvarint(dst, e.ID.Ordinal-e.PrevOrdinal)
	}
	return binary.AppendUvarint(dst, e.PrevOrdinal)
}

// DecodeEnvelope reads an envelope into e and returns what follows it. It returns ErrVersion for a version that it does not
// know and ErrEnvelope for every other fault; e has no meaning then.
func DecodeEnvelope(b []byte, e *Envelope) (rest []byte, err error) {
	const head = 18
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: no bytes", ErrEnvelope)
	}
	if b[0] != envelopeVersion {
		return nil, fmt.Errorf("%w: envelope version %d, known is %d", ErrVersion, b[0], envelopeVersion)
	}
	if len(b) < head {
		return nil, fmt.Errorf("%w: %d bytes", ErrEnvelope, len(b))
	}
	flags := b[1]
	if flags&^(flagSwift|flagStart) != 0 || flags == flagStart {
		return nil, fmt.Errorf("%w: flags %#x", ErrEnvelope, flags)
	}
	*e = Envelope{Swift: flags&flagSwift != 0, Start: flags&flagStart != 0}
	e.Schema = binary.LittleEndian.Uint64(b[2:])
	e.ID.Fingerprint = binary.LittleEndian.Uint64(b[10:])

	r := varints{b: b[head:]}
	partition := r.next()
	e.ID.Partition = uint32(partition)
	e.ID.Offset = r.next()
	e.ID.Ordinal = r.next()
	e.EventTime = unzigzag(r.next())
	e.SystemTime = e.EventTime + unzigzag(r.next())
	if flags == flagSwift {
		back := r.next()
		e.PrevOffset = e.ID.Offset - back
		e.PrevOrdinal = r.next()
		if back == 0 {
			e.PrevOrdinal = e.ID.Ordinal - e.PrevOrdinal
		}
	}
	if r.bad || partition > 1<<32-1 {
		return nil, fmt.Errorf("%w: malformed varint", ErrEnvelope)
	}
	return r.b, nil
}

// varints reads varints one after the other; after a malformed one it is bad and yields zeros.
type varints struct {
	b   []byte
	bad bool
}

func (r *varints) next() uint64 {
	v, n := uvarint(r.b)
	if n == 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}
