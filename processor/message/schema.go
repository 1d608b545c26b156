package message

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// kindNames are the words of a spec, by Kind. The numbers are part of schema fingerprints and so of stored bytes.
var kindNames = [...]string{
	Null: "null", String: "string", Int64: "int64", Uint64: "uint64", Double: "double",
	Boolean: "boolean", Timestamp: "timestamp", JSON: "json",
}

// String is the spec's word for the kind; "null" for Null.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind reads a column type of a spec. Null is not one.
func ParseKind(word string) (Kind, bool) {
	for k := String; int(k) < len(kindNames); k++ {
		if kindNames[k] == word {
			return k, true
		}
	}
	return Null, false
}

// NewSchema makes the schema of these columns, which it copies. Names must be distinct, not empty and valid UTF-8 (they become
// members of JSON objects), and kinds must be column types; anything else is an error that names the column.
func NewSchema(columns []Column) (*Schema, error) {
	s := &Schema{Columns: append([]Column(nil), columns...), index: make(map[string]int, len(columns))}
	for i, c := range s.Columns {
		if c.Name == "" {
			return nil, fmt.Errorf("column %d has no name", i)
		}
		if !utf8.ValidString(c.Name) {
			return nil, fmt.Errorf("column %d: the name %q is not valid UTF-8", i, c.Name)
		}
		if c.Kind < String || c.Kind > JSON {
			return nil, fmt.Errorf("column %s: %s is not a column type", c.Name, c.Kind)
		}
		if first, ok := s.index[c.Name]; ok {
			return nil, fmt.Errorf("columns %d and %d are both named %s", first, i, c.Name)
		}
		s.index[c.Name] = i
	}
	s.print = xxhash.Sum64(s.appendCanonical(nil))
	return s, nil
}

// MustSchema is NewSchema for columns that are known to be right; it panics where NewSchema returns an error.
func MustSchema(columns ...Column) *Schema {
	s, err := NewSchema(columns)
	if err != nil {
		panic(err)
	}
	return s
}

// appendCanonical appends, for every column: length of the name (uvarint), name, kind, required (0 or 1).
func (s *Schema) appendCanonical(dst []byte) []byte {
	for _, c := range s.Columns {
		dst = binary.AppendUvarint(dst, uint64(len(c.Name)))
		dst = append(dst, c.Name...)
		required := byte(0)
		if c.Required {
			required = 1
		}
		dst = append(dst, byte(c.Kind), required)
	}
	return dst
}

// Index is the position of the column with this name, or -1.
func (s *Schema) Index(name string) int {
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}

// Fingerprint identifies the schema for ever: xxhash64 (seed 0) over names, kinds and required in order, see docs/formats.md.
func (s *Schema) Fingerprint() uint64 { return s.print }

// Equal says whether both have the same columns in the same order.
func (s *Schema) Equal(o *Schema) bool {
	if s == o {
		return true
	}
	if s == nil || o == nil || s.print != o.print || len(s.Columns) != len(o.Columns) {
		return false
	}
	for i := range s.Columns {
		if s.Columns[i] != o.Columns[i] {
			return false
		}
	}
	return true
}
