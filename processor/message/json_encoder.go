package message

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// JSONEncoder writes rows of a schema as JSON objects with all columns in order, null ones too: integers and doubles as numbers
// (doubles in the shortest form that reads back the same), timestamps as AppendTimestamp does, json columns as their text without
// white space between tokens. Strings keep every character but those that JSON demands to be escaped. An encoder may be used by
// many goroutines.
type JSONEncoder struct {
	schema *Schema
	heads  []string // by column: what comes before its value
}

// NewJSONEncoder makes an encoder for rows of this schema.
func NewJSONEncoder(s *Schema) *JSONEncoder {
	e := &JSONEncoder{schema: s}
	for i, c := range s.Columns {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		e.heads = append(e.heads, separator+string(appendQuoted(nil, c.Name))+":")
	}
	return e
}

// Append appends the object of a row. It fails, naming the column, on a null in a required column, a value of another kind than
// the column's, invalid UTF-8, NaN, infinity, a time that RFC 3339 cannot write and a json column that is not JSON; dst is
// returned as it was then.
func (e *JSONEncoder) Append(dst []byte, r Row) ([]byte, error) {
	if len(r) != len(e.heads) {
		return dst, fmt.Errorf("a row of %d values for %d columns", len(r), len(e.heads))
	}
	start := len(dst)
	if len(r) == 0 {
		return append(dst, "{}"...), nil
	}
	for i := range r {
		dst = append(dst, e.heads[i]...)
		var err error
		if dst, err = appendJSONColumn(dst, &e.schema.Columns[i], &r[i]); err != nil {
			return dst[:start], err
		}
	}
	return append(dst, '}'), nil
}

// appendJSONColumn appends a value that stands in column c.
func appendJSONColumn(dst []byte, c *Column, v *Value) ([]byte, error) {
	if v.Kind != c.Kind {
		if err := mismatch(c, v); err != nil {
			return dst, err
		}
		return append(dst, "null"...), nil
	}
	dst, err := appendJSONValue(dst, v)
	if err != nil {
		return dst, fmt.Errorf("column %s: %w", c.Name, err)
	}
	return dst, nil
}

func appendJSONValue(dst []byte, v *Value) ([]byte, error) {
	switch v.Kind {
	case String:
		return appendString(dst, v.Str)
	case Int64:
		return strconv.AppendInt(dst, v.Int64(), 10), nil
	case Uint64:
		return strconv.AppendUint(dst, v.Num, 10), nil
	case Double:
		return appendDouble(dst, v.Double())
	case Boolean:
		return strconv.AppendBool(dst, v.Boolean()), nil
	case Timestamp:
		dst = append(dst, '"')
		dst, err := AppendTimestamp(dst, v.Timestamp())
		return append(dst, '"'), err
	case JSON:
		return appendDocument(dst, bytesOf(v.Str))
	}
	return append(dst, "null"...), nil
}

// appendDocument appends a document that somebody claims to be JSON.
func appendDocument(dst, text []byte) ([]byte, error) {
	skipper := jsonSkipper{b: text}
	end, err := skipper.value(skipper.space(0), 1)
	if err == nil {
		if end = skipper.space(end); end != len(text) {
			err = errJSONTrailing
		}
	}
	if err != nil {
		return dst, newJSONError("", text, end, err)
	}
	if skipper.spaced {
		return appendCompact(dst, text), nil
	}
	return append(dst, text...), nil
}

// appendQuoted appends a column's name, which NewSchema found to be valid UTF-8, as a JSON string.
func appendQuoted(dst []byte, name string) []byte {
	dst, _ = appendString(dst, name)
	return dst
}

// appendString appends a JSON string; invalid UTF-8 is an error.
func appendString(dst []byte, s string) ([]byte, error) {
	dst = append(dst, '"')
	b, high := bytesOf(s), uint64(0)
	for from := 0; ; from++ {
		stop, h := nextStop(b, from)
		dst = append(dst, b[from:stop]...)
		high |= h
		if stop == len(b) {
			break
		}
		dst = appendEscape(dst, b[stop])
		from = stop
	}
	if high&highs != 0 && !utf8.ValidString(s) {
		return dst, errJSONUTF8
	}
	return append(dst, '"'), nil
}

// appendEscape appends a quote, backslash or control character in the form that a JSON string takes.
func appendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
