package message

import (
	"errors"
	"fmt"
)

// ErrKey marks bytes that are no key of the columns at hand.
var ErrKey = errors.New("not a key")

// KeyEncoder makes keys from some columns of a schema's rows, and back. The key of one string column is its bytes, so that topics
// written by ordinary Kafka producers have the same keys; any other is a JSON array of the columns, by the rules of JSONDecoder
// and JSONEncoder. Equal values have equal keys. A key encoder belongs to one goroutine.
type KeyEncoder struct {
	columns   []Column // in the key's order
	positions []int    // of the columns in a row
	text      bool     // the key is the bytes of one string column
	values    jsonValues
}

// NewKeyEncoder makes an encoder for keys of these columns, given by their positions in the schema.
func NewKeyEncoder(s *Schema, columns []int) *KeyEncoder {
	k := &KeyEncoder{}
	for _, position := range columns {
		k.columns = append(k.columns, s.Columns[position])
		k.positions = append(k.positions, position)
	}
	k.text = len(columns) == 1 && k.columns[0].Kind == String
	return k
}

// Append appends the key of a row. null says that the key is Kafka's null, which a key of one string column is if that column is
// null; nothing is appended then. Errors are those of JSONEncoder, without the check of UTF-8 for a key of one string column. A key
// that is not null is never a nil slice.
func (k *KeyEncoder) Append(dst []byte, r Row) (key []byte, null bool, err error) {
	start := len(dst)
	if k.text {
		return k.appendText(dst, &r[k.positions[0]])
	}
	dst = append(dst, '[')
	for i, position := range k.positions {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendJSONColumn(dst, &k.columns[i], &r[position]); err != nil {
			return dst[:start], false, fmt.Errorf("key: %w", err)
		}
	}
	return append(dst, ']'), false, nil
}

func (k *KeyEncoder) appendText(dst []byte, v *Value) (key []byte, null bool, err error) {
	if v.Kind != String {
		if err := mismatch(&k.columns[0], v); err != nil {
			return dst, false, fmt.Errorf("key: %w", err)
		}
		return dst, true, nil
	}
	if dst == nil && v.Str == "" {
		return []byte{}, false, nil
	}
	return append(dst, v.Str...), false, nil
}

// Decode is the inverse of Append: one value for each column of the key. A nil key of one string column is null. Strings point
// into the key where they can. Every fault is an ErrKey.
func (k *KeyEncoder) Decode(key []byte) (Row, error) { return k.DecodeTo(nil, key) }

// DecodeTo is Decode with the row in dst's memory if that is large enough.
func (k *KeyEncoder) DecodeTo(dst Row, key []byte) (Row, error) {
	dst = sized(dst, len(k.columns))
	if !k.text {
		return dst, k.decodeArray(dst, key)
	}
	switch {
	case key != nil:
		dst[0] = BytesValue(key)
	case k.columns[0].Required:
		return dst, fmt.Errorf("%w: column %s: %w", ErrKey, k.columns[0].Name, errNullRequired)
	default:
		dst[0] = Value{}
	}
	return dst, nil
}

func (k *KeyEncoder) decodeArray(dst Row, key []byte) error {
	k.values.buffer = nil
	opening := byte('[')
	i := 0
	var err error
	for n := range dst {
		c := &k.columns[n]
		if i, err = scanByte(key, i, opening); err == nil {
			i, err = k.values.read(&dst[n], c.Kind, key, i)
		}
		if err == nil && dst[n].Kind == Null && c.Required {
			err = errNullRequired
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrKey, newJSONError(c.Name, key, i, err))
		}
		opening = ','
	}
	if len(dst) == 0 {
		i, err = scanByte(key, i, '[')
	}
	if err == nil {
		i, err = scanByte(key, i, ']')
	}
	if err == nil && i != len(key) {
		err = errJSONTrailing
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKey, newJSONError("", key, i, err))
	}
	return nil
}
