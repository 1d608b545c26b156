package message

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

const (
	idHead        = 20   // fingerprint, partition, offset
	ordinalInline = 0xF0 // smaller ordinals are one byte
	idReserved    = 0xF8 // from here on: suffixes of other kinds, none defined yet
)

// ErrID marks bytes that are no message id.
var ErrID = errors.New("not a message id")

// AppendBinary appends the id's bytes, 21 to 29 of them, whose order (bytes.Compare) is that of Compare. No id is a prefix of another.
func (id ID) AppendBinary(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, id.Fingerprint)
	dst = binary.BigEndian.AppendUint32(dst, id.Partition)
	dst = binary.BigEndian.AppendUint64(dst, id.Offset)
	if id.Ordinal < ordinalInline {
		return append(dst, byte(id.Ordinal))
	}
	n := (bits.Len64(id.Ordinal) + 7) / 8
	dst = append(dst, byte(ordinalInline+n-1))
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(id.Ordinal>>shift))
	}
	return dst
}

// ParseID is the inverse of AppendBinary. Anything that AppendBinary does not write is an ErrID.
func ParseID(b []byte) (ID, error) {
	if len(b) <= idHead {
		return ID{}, fmt.Errorf("%w: %d bytes", ErrID, len(b))
	}
	id := ID{
		Fingerprint: binary.BigEndian.Uint64(b),
		Partition:   binary.BigEndian.Uint32(b[8:]),
		Offset:      binary.BigEndian.Uint64(b[12:]),
	}
	first, rest := b[idHead], b[idHead+1:]
	switch {
	case first < ordinalInline:
		if len(rest) != 0 {
			return ID{}, fmt.Errorf("%w: %d bytes follow it", ErrID, len(rest))
		}
		id.Ordinal = uint64(first)
	case first < idReserved:
		if len(rest) != int(first)-ordinalInline+1 {
			return ID{}, fmt.Errorf("%w: its ordinal has %d bytes", ErrID, len(rest))
		}
		for _, c := range rest {
			id.Ordinal = id.Ordinal<<8 | uint64(c)
		}
		if rest[0] == 0 || id.Ordinal < ordinalInline {
			return ID{}, fmt.Errorf("%w: its ordinal has a shorter form", ErrID)
		}
	default:
		return ID{}, fmt.Errorf("%w: suffix of an unknown kind %#x", ErrID, first)
	}
	return id, nil
}

// Hex is the binary form in upper-case hexadecimal digits, which is what receivers outside see; it sorts as the id does.
func (id ID) Hex() string {
	var room [idHead + 9]byte
	return strings.ToUpper(hex.EncodeToString(id.AppendBinary(room[:0])))
}

// Compare orders ids by fingerprint, partition, offset and ordinal: -1, 0 or 1.
func Compare(a, b ID) int {
	switch {
	case a.Fingerprint != b.Fingerprint:
		return cmp.Compare(a.Fingerprint, b.Fingerprint)
	case a.Partition != b.Partition:
		return cmp.Compare(a.Partition, b.Partition)
	case a.Offset != b.Offset:
		return cmp.Compare(a.Offset, b.Offset)
	default:
		return cmp.Compare(a.Ordinal, b.Ordinal)
	}
}
