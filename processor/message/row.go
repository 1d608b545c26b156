package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRow marks bytes that are no row of the schema at hand.
var ErrRow = errors.New("not a row")

var (
	errNullRequired = errors.New("null in a required column")
	errShort        = errors.New("it ends early")
	errVarint       = errors.New("malformed varint")
	errBoolean      = errors.New("a boolean is neither 0 nor 1")
)

// AppendRow appends the compact form of r: see docs/formats.md. The bytes are the same for equal rows. It fails, naming the
// column, on a null in a required column, on a value of another kind than the column's, and on a row of another length.
func AppendRow(dst []byte, s *Schema, r Row) ([]byte, error) {
	if len(r) != len(s.Columns) {
		return dst, fmt.Errorf("a row of %d values for %d columns", len(r), len(s.Columns))
	}
	start := len(dst)
	for i := 0; i < len(r); i += 8 {
		dst = append(dst, 0)
	}
	for i := range r {
		c, v := &s.Columns[i], &r[i]
		if v.Kind != c.Kind {
			if err := mismatch(c, v); err != nil {
				return dst[:start], err
			}
			dst[start+i/8] |= 1 << (i % 8)
			continue
		}
		switch v.Kind {
		case String, JSON:
			dst = binary.AppendUvarint(dst, uint64(len(v.Str)))
			dst = append(dst, v.Str...)
		case Int64, Timestamp:
			dst = binary.AppendUvarint(dst, zigzag(int64(v.Num)))
		case Uint64:
			dst = binary.AppendUvarint(dst, v.Num)
		case Double:
			dst = binary.LittleEndian.AppendUint64(dst, v.Num)
		case Boolean:
			dst = append(dst, boolByte(v.Num != 0))
		}
	}
	return dst, nil
}

// mismatch says why v, which is not of c's kind, may not stand in c; nil for a null that may.
func mismatch(c *Column, v *Value) error {
	switch {
	case v.Kind != Null:
		return fmt.Errorf("column %s: a value of type %s in a column of type %s", c.Name, v.Kind, c.Kind)
	case c.Required:
		return fmt.Errorf("column %s: %w", c.Name, errNullRequired)
	default:
		return nil
	}
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// DecodeRow reads a row in compact form, which is all of b. The row takes dst's place: it uses dst's memory if that is large
// enough, and then nothing is allocated. Its strings point into b. Every fault is an ErrRow that names the column.
func DecodeRow(dst Row, s *Schema, b []byte) (Row, error) {
	n := len(s.Columns)
	bitmap := (n + 7) / 8
	if len(b) < bitmap {
		return dst, fmt.Errorf("%w: %d bytes for %d columns", ErrRow, len(b), n)
	}
	if n%8 != 0 && b[bitmap-1]>>(n%8) != 0 {
		return dst, fmt.Errorf("%w: nulls beyond the last of %d columns", ErrRow, n)
	}
	dst = sized(dst, n)
	nulls, at := b[:bitmap], bitmap
	for i := range dst {
		c := &s.Columns[i]
		if nulls[i/8]&(1<<(i%8)) != 0 {
			if c.Required {
				return dst, fmt.Errorf("%w: column %s: %w", ErrRow, c.Name, errNullRequired)
			}
			dst[i] = Value{}
			continue
		}
		used, err := decodeValue(&dst[i], c.Kind, b[at:])
		if err != nil {
			return dst, fmt.Errorf("%w: column %s: %w", ErrRow, c.Name, err)
		}
		at += used
	}
	if at != len(b) {
		return dst, fmt.Errorf("%w: %d bytes follow it", ErrRow, len(b)-at)
	}
	return dst, nil
}

// sized is a row of n values in dst's memory if that suffices.
func sized(dst Row, n int) Row {
	if cap(dst) < n {
		return make(Row, n)
	}
	return dst[:n]
}

// decodeValue reads one value that is not null from the head of b and returns the number of its bytes.
func decodeValue(v *Value, k Kind, b []byte) (int, error) {
	switch k {
	case Double:
		if len(b) < 8 {
			return 0, errShort
		}
		*v = Value{Kind: Double, Num: binary.LittleEndian.Uint64(b)}
		return 8, nil
	case Boolean:
		if len(b) == 0 {
			return 0, errShort
		}
		if b[0] > 1 {
			return 0, errBoolean
		}
		*v = Value{Kind: Boolean, Num: uint64(b[0])}
		return 1, nil
	}
	u, used := uvarint(b)
	if used == 0 {
		return 0, errVarint
	}
	switch k {
	case Int64, Timestamp:
		*v = Value{Kind: k, Num: uint64(unzigzag(u))}
	case Uint64:
		*v = Value{Kind: k, Num: u}
	default:
		if u > uint64(len(b)-used) {
			return 0, errShort
		}
		*v = Value{Kind: k, Str: stringOf(b[used : used+int(u)])}
		used += int(u)
	}
	return used, nil
}
