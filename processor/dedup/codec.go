package dedup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// GroupSize is how many origin partitions share one stored entry.
const GroupSize = 32

// valueVersion is the first byte of a stored entry's value.
const valueVersion = 1

// keySize is that of a stored entry's key: fingerprint (8 bytes) and group number (4), big-endian.
const keySize = 12

// ErrCorrupt is wrapped by the error of an entry that cannot be read.
var ErrCorrupt = errors.New("corrupt frontier entry")

// AppendDirty calls each with every entry that changed since the last call; an empty value deletes the entry. The bytes are
// valid only during the call. See docs/formats.md for them.
func (f *Frontier) AppendDirty(each func(key, value []byte)) {
	for _, g := range f.gone {
		for group := range g.groups {
			each(f.appendKey(g.fingerprint, group), nil)
		}
	}
	f.gone = f.gone[:0]
	for _, r := range f.runs {
		for w, word := range r.dirty {
			for ; word != 0; word &= word - 1 {
				group := uint32(w*64 + bits.TrailingZeros64(word))
				each(f.appendKey(r.fingerprint, group), f.appendValue(r, group))
			}
			r.dirty[w] = 0
		}
	}
}

// Load puts one stored entry back, before the first Advance. Entries of fingerprints that are not known are kept too, so that they can be forgotten; an
// empty value is a deleted entry.
func (f *Frontier) Load(key, value []byte) error {
	if len(key) != keySize {
		return fmt.Errorf("%w: key of %d bytes", ErrCorrupt, len(key))
	}
	fingerprint, group := binary.BigEndian.Uint64(key), binary.BigEndian.Uint32(key[8:])
	if group >= MaxOrigins/GroupSize {
		return fmt.Errorf("%w: group %d", ErrCorrupt, group)
	}
	var lanes [GroupSize]lane
	if len(value) > 0 {
		if err := decodeValue(value, &lanes); err != nil {
			return fmt.Errorf("%w %x: %w", ErrCorrupt, key, err)
		}
	}
	r := f.of(fingerprint)
	r.reach(group*GroupSize + GroupSize - 1)
	copy(r.lanes[group*GroupSize:], lanes[:])
	return nil
}

func (f *Frontier) appendKey(fingerprint uint64, group uint32) []byte {
	f.key = binary.BigEndian.AppendUint64(f.key[:0], fingerprint)
	f.key = binary.BigEndian.AppendUint32(f.key, group)
	return f.key
}

// appendValue encodes a group; one without any id, left so by Undo, is an empty value.
func (f *Frontier) appendValue(r *run, group uint32) []byte {
	b := append(f.value[:0], valueVersion)
	for i, l := range r.lanes[group*GroupSize:][:GroupSize] {
		if l.seen {
			b = append(b, byte(i))
			b = binary.AppendUvarint(b, l.offset)
			b = binary.AppendUvarint(b, l.ordinal)
		}
	}
	f.value = b
	if len(b) == 1 {
		return nil
	}
	return b
}

// decodeValue reads the lanes of a group: version, then entries of origin modulo GroupSize (one byte, ascending), offset and
// ordinal (minimal uvarints) to the end.
func decodeValue(b []byte, lanes *[GroupSize]lane) error {
	if b[0] != valueVersion {
		return fmt.Errorf("version %d", b[0])
	}
	b = b[1:]
	if len(b) == 0 {
		return errors.New("no entries")
	}
	for before := -1; len(b) > 0; {
		i := int(b[0])
		if i <= before || i >= GroupSize {
			return fmt.Errorf("origin %d after %d", i, before)
		}
		before = i
		l := lane{seen: true}
		var err error
		if l.offset, b, err = uvarint(b[1:]); err != nil {
			return err
		}
		if l.ordinal, b, err = uvarint(b); err != nil {
			return err
		}
		lanes[i] = l
	}
	return nil
}

// uvarint reads one, and refuses encodings longer than need be, so that every value has one encoding.
func uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, errors.New("bad integer")
	}
	return v, b[n:], nil
}
