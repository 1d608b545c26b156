package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The bytes of changelog records. A row of the store has the same key and value, so a record is replayed without being understood.
//
//	key   = version (1 byte), kind (1 byte), length of the state's name (uvarint), name, key bytes (all the rest)
//	value = schema fingerprint (8 bytes, big endian), payload (all the rest); an empty value deletes the row
//
// Keys of one kind and name are neighbours in the store and keep the order of their key bytes. docs/formats.md has the same in prose.

// KeyVersion is the first byte of each key.
const KeyVersion = 1

// MaxNameBytes bounds the name of a state.
const MaxNameBytes = 249

// fingerprintBytes is the length of a value's head.
const fingerprintBytes = 8

// Kind says what a row is about.
type Kind byte

// The kinds of rows. Numbers are part of the format and never change meaning.
const (
	KindState         Kind = 1 // a state's value for a key
	KindTimer         Kind = 2 // a pending timer
	KindFrontier      Kind = 3 // how far the input messages of one origin were taken
	KindCatalog       Kind = 4 // the ids of input messages seen, for origins that have no order
	KindRunningNumber Kind = 5 // the last number given to an output
	KindDelivery      Kind = 6 // how far deliveries to an external system are
	KindWatermark     Kind = 7 // the watermark of an input
)

// String names the kind, for errors and logs.
func (k Kind) String() string {
	names := [...]string{"", "state", "timer", "frontier", "catalog", "running number", "delivery", "watermark"}
	if k >= 1 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

var (
	// ErrUnknownVersion means that a changelog key was written by a later version of this program.
	ErrUnknownVersion = errors.New("unknown version of changelog key")
	// ErrMalformed means that a changelog key or value is not one.
	ErrMalformed = errors.New("malformed changelog record")
)

// AppendKey appends the key of a row to dst. name is at most MaxNameBytes long, which the spec's validation has seen to; a longer
// one makes a key that ParseKey refuses.
func AppendKey(dst []byte, kind Kind, name string, key []byte) []byte {
	dst = append(dst, KeyVersion, byte(kind))
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	return append(dst, key...)
}

// ParseKey takes a row's key apart; name and key are parts of b. It fails with ErrUnknownVersion or ErrMalformed.
func ParseKey(b []byte) (kind Kind, name, key []byte, err error) {
	if len(b) < 3 {
		return 0, nil, nil, fmt.Errorf("%w: key of %d bytes", ErrMalformed, len(b))
	}
	if b[0] != KeyVersion {
		return 0, nil, nil, fmt.Errorf("%w: %d, this program knows %d", ErrUnknownVersion, b[0], KeyVersion)
	}
	kind = Kind(b[1])
	if kind < KindState || kind > KindWatermark {
		return 0, nil, nil, fmt.Errorf("%w: %s", ErrMalformed, kind)
	}
	length, n := binary.Uvarint(b[2:])
	rest := b[2+max(n, 0):]
	// A longer uvarint for the same number would give one row two keys.
	if n <= 0 || n != uvarintLen(length) || length > MaxNameBytes || length > uint64(len(rest)) {
		return 0, nil, nil, fmt.Errorf("%w: length of the name in a key of %d bytes", ErrMalformed, len(b))
	}
	return kind, rest[:length:length], rest[length:], nil
}

// uvarintLen is the number of bytes of v's shortest encoding.
func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// AppendValue appends the value of a row to dst. fingerprint is that of the payload's schema.
func AppendValue(dst []byte, fingerprint uint64, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, fingerprint)
	return append(dst, payload...)
}

// ParseValue takes a row's value apart; payload is a part of b. An empty value, a deletion, is no value: it fails like all that is
// too short, with ErrMalformed.
func ParseValue(b []byte) (fingerprint uint64, payload []byte, err error) {
	if len(b) < fingerprintBytes {
		return 0, nil, fmt.Errorf("%w: value of %d bytes", ErrMalformed, len(b))
	}
	return binary.BigEndian.Uint64(b), b[fingerprintBytes:], nil
}
