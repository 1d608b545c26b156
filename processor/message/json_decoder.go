package message

import (
	"errors"
	"fmt"
	"math"
)

var (
	errJSONObject   = errors.New("a row is a JSON object")
	errJSONRepeated = errors.New("a member is repeated")
	errMissing      = errors.New("a required column is missing")
	errJSONType     = errors.New("a value of another type than the column's")
)

// JSONError says what is wrong with a JSON document: where, why, and a few bytes (at most 32) of the document around the fault.
type JSONError struct {
	Column string // empty if no column of the schema is concerned
	Offset int    // in bytes from the document's start
	Cause  error
	Near   string
}

func newJSONError(column string, b []byte, offset int, cause error) *JSONError {
	const before, after = 8, 24
	near := string(b[max(0, offset-before):min(len(b), offset+after)])
	return &JSONError{Column: column, Offset: offset, Cause: cause, Near: near}
}

func (e *JSONError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("JSON, byte %d: %v, near %q", e.Offset, e.Cause, e.Near)
	}
	return fmt.Sprintf("JSON, column %s, byte %d: %v, near %q", e.Column, e.Offset, e.Cause, e.Near)
}

func (e *JSONError) Unwrap() error { return e.Cause }

// JSONDecoder reads JSON objects as rows of a schema, by these rules:
//
//   - A missing member is null, a member that is no column is checked and ignored, a column that comes twice is an error.
//   - string: a JSON string. json: any value, kept as its text without white space between tokens; null is null.
//   - int64, uint64: a number that is integral (1.0 and 1e3 are), read exactly from its digits, or a string of such a number.
//   - double: a number, rounded to the nearest double; one that is too large is an error. boolean: true or false.
//   - timestamp: a string as ParseTimestamp reads it, or an integral number of milliseconds since 1970.
//   - Invalid UTF-8, half surrogate pairs, a null or missing required column, nesting beyond 200 and anything after the object are
//     errors.
//
// A decoder belongs to one goroutine. It expects the members in the order of the record before, and is slower when they differ.
type JSONDecoder struct {
	schema *Schema
	quoted []string // by column: its name as JSON, and the colon
	order  []int    // by position of a member in the record before: its column, or -1
	seen   []uint64 // by column: the last record that had it
	record uint64   // number of the record at hand, from 1
	values jsonValues
	name   []byte // room for a name with escapes
}

// maxForeign is how many members beyond the number of columns are remembered in order.
const maxForeign = 64

// NewJSONDecoder makes a decoder for rows of this schema.
func NewJSONDecoder(s *Schema) *JSONDecoder {
	d := &JSONDecoder{schema: s, seen: make([]uint64, len(s.Columns)), order: make([]int, 0, len(s.Columns)+maxForeign)}
	for _, c := range s.Columns {
		d.quoted = append(d.quoted, string(appendQuoted(nil, c.Name))+":")
	}
	return d
}

// Decode reads one object, which is all of b. The row takes dst's place: it uses dst's memory if that is large enough. Strings
// without escapes point into b, others into memory of this row's own; without those nothing is allocated. Errors are
// JSONErrors.
func (d *JSONDecoder) Decode(dst Row, b []byte) (Row, error) {
	dst = sized(dst, len(d.schema.Columns))
	d.record++
	d.values.buffer = nil
	column, offset, err := d.object(dst, b)
	if err == nil {
		return dst, nil
	}
	name := ""
	if column >= 0 {
		name = d.schema.Columns[column].Name
	}
	return dst, newJSONError(name, b, offset, err)
}

// object reads the whole document. With an error it returns the column concerned, or -1, and the position of the fault.
func (d *JSONDecoder) object(row Row, b []byte) (column, i int, err error) {
	i = skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return -1, i, errJSONObject
	}
	i = skipSpace(b, i+1)
	found := 0
	if i < len(b) && b[i] == '}' {
		i++
	} else if found, column, i, err = d.members(row, b, i); err != nil {
		return column, i, err
	}
	if found < len(row) {
		if column, err = d.fill(row); err != nil {
			return column, i, err
		}
	}
	if end := skipSpace(b, i); end != len(b) {
		return -1, end, errJSONTrailing
	}
	return -1, i, nil
}

// members reads the members of an object, of which there is at least one, and its closing brace.
func (d *JSONDecoder) members(row Row, b []byte, i int) (found, column, end int, err error) {
	for position := 0; ; position++ {
		column = d.predict(b, i, position)
		if column >= 0 {
			i += len(d.quoted[column])
		} else if column, i, err = d.lookup(b, i, position); err != nil {
			return found, column, i, err
		}
		i = skipSpace(b, i)
		if column >= 0 {
			if d.seen[column] == d.record {
				return found, column, i, errJSONRepeated
			}
			d.seen[column] = d.record
			found++
			i, err = d.column(&row[column], column, b, i)
		} else {
			skipper := jsonSkipper{b: b}
			i, err = skipper.value(i, 1)
		}
		if err != nil {
			return found, column, i, err
		}
		i = skipSpace(b, i)
		switch {
		case i == len(b):
			return found, -1, i, errJSONEnd
		case b[i] == '}':
			return found, -1, i + 1, nil
		case b[i] != ',':
			return found, column, i, errJSONSyntax
		}
		i = skipSpace(b, i+1)
	}
}

// predict is the column that stood at this position in the record before, if its name stands at i now; else -1.
func (d *JSONDecoder) predict(b []byte, i, position int) int {
	if position >= len(d.order) {
		return -1
	}
	column := d.order[position]
	if column < 0 {
		return -1
	}
	if quoted := d.quoted[column]; len(b)-i < len(quoted) || string(b[i:i+len(quoted)]) != quoted {
		return -1
	}
	return column
}

// lookup reads the name at i and the colon, and remembers the column for the next record.
func (d *JSONDecoder) lookup(b []byte, i, position int) (column, end int, err error) {
	i, err = scanByte(b, i, '"')
	if err != nil {
		return -1, i, err
	}
	end, escaped, err := scanString(b, i)
	if err != nil {
		return -1, end, err
	}
	name := b[i:end]
	if escaped {
		d.name = unescape(d.name[:0], name)
		name = d.name
	}
	column, ok := d.schema.index[string(name)]
	if !ok {
		column = -1
	}
	if position == len(d.order) && position < cap(d.order) {
		d.order = append(d.order, column)
	} else if position < len(d.order) {
		d.order[position] = column
	}
	end, err = scanByte(b, skipSpace(b, end+1), ':')
	return column, end, err
}

func (d *JSONDecoder) column(v *Value, column int, b []byte, i int) (int, error) {
	c := &d.schema.Columns[column]
	end, err := d.values.read(v, c.Kind, b, i)
	if err == nil && v.Kind == Null && c.Required {
		return i, errNullRequired
	}
	return end, err
}

// fill makes the columns null that the record does not have.
func (d *JSONDecoder) fill(row Row) (column int, err error) {
	for i := range row {
		if d.seen[i] == d.record {
			continue
		}
		if d.schema.Columns[i].Required {
			return i, errMissing
		}
		row[i] = Value{}
	}
	return -1, nil
}

// jsonValues reads single values. What cannot point into the document goes to buffer, which is made when first needed, as long
// as the rest of the document, and so never moves; it belongs to the row then.
type jsonValues struct{ buffer []byte }

// room is the buffer with space for whatever the document has from i on.
func (r *jsonValues) room(b []byte, i int) []byte {
	if r.buffer == nil {
		r.buffer = make([]byte, 0, len(b)-i)
	}
	return r.buffer
}

// read reads the value at i for a column of kind k.
func (r *jsonValues) read(v *Value, k Kind, b []byte, i int) (end int, err error) {
	if i >= len(b) {
		return len(b), errJSONEnd
	}
	if b[i] == 'n' {
		*v = Value{}
		return scanWord(b, i, "null")
	}
	switch k {
	case String:
		if b[i] != '"' {
			return i, errJSONType
		}
		v.Kind, v.Num = String, 0
		v.Str, end, err = r.text(b, i+1)
		return end, err
	case Int64, Uint64:
		return r.integer(v, k, b, i)
	case Double:
		if b[i] != '-' && b[i]-'0' > 9 {
			return i, errJSONType
		}
		f, end, err := scanDouble(b, i)
		*v = DoubleValue(f)
		return end, err
	case Boolean:
		return readBoolean(v, b, i)
	case Timestamp:
		return r.timestamp(v, b, i)
	}
	return r.document(v, b, i)
}

// text reads the string whose opening quote stands before i, and its closing quote.
func (r *jsonValues) text(b []byte, i int) (s string, end int, err error) {
	end, escaped, err := scanString(b, i)
	if err != nil {
		return "", end, err
	}
	if !escaped {
		return stringOf(b[i:end]), end + 1, nil
	}
	from := len(r.room(b, i))
	r.buffer = unescape(r.buffer, b[i:end])
	return stringOf(r.buffer[from:]), end + 1, nil
}

func (r *jsonValues) integer(v *Value, k Kind, b []byte, i int) (end int, err error) {
	var negative bool
	var magnitude uint64
	switch {
	case b[i] == '"':
		s, after, err := r.text(b, i+1)
		if err != nil {
			return after, err
		}
		negative, magnitude, end, err = scanInteger(bytesOf(s), 0)
		if err == errIntRange {
			return i, err
		}
		if err != nil || end != len(s) {
			return i, errNotInteger
		}
		end = after
	case b[i] == '-' || b[i]-'0' <= 9:
		if negative, magnitude, end, err = scanInteger(b, i); err != nil {
			return end, err
		}
	default:
		return i, errJSONType
	}
	v.Kind, v.Str = k, ""
	if k == Int64 {
		v.Num, err = signed(negative, magnitude)
	} else {
		v.Num, err = unsigned(negative, magnitude)
	}
	if err != nil {
		return i, err
	}
	return end, nil
}

func readBoolean(v *Value, b []byte, i int) (int, error) {
	switch b[i] {
	case 't':
		*v = BooleanValue(true)
		return scanWord(b, i, "true")
	case 'f':
		*v = BooleanValue(false)
		return scanWord(b, i, "false")
	}
	return i, errJSONType
}

func (r *jsonValues) timestamp(v *Value, b []byte, i int) (end int, err error) {
	if b[i] == '"' {
		s, end, err := r.text(b, i+1)
		if err != nil {
			return end, err
		}
		micros, err := ParseTimestamp(s)
		if err != nil {
			return i, err
		}
		*v = TimestampValue(micros)
		return end, nil
	}
	if b[i] != '-' && b[i]-'0' > 9 {
		return i, errJSONType
	}
	negative, magnitude, end, err := scanInteger(b, i)
	if err != nil {
		return end, err
	}
	if magnitude > math.MaxInt64/1000 {
		return i, errTimeRange
	}
	micros := int64(magnitude) * 1000
	if negative {
		micros = -micros
	}
	if micros < minTime || micros > maxTime {
		return i, errTimeRange
	}
	*v = TimestampValue(micros)
	return end, nil
}

// document keeps any value as its text.
func (r *jsonValues) document(v *Value, b []byte, i int) (int, error) {
	skipper := jsonSkipper{b: b}
	end, err := skipper.value(i, 1)
	if err != nil {
		return end, err
	}
	text := b[i:end]
	if skipper.spaced {
		from := len(r.room(b, i))
		r.buffer = appendCompact(r.buffer, text)
		text = r.buffer[from:]
	}
	*v = JSONValue(stringOf(text))
	return end, nil
}
