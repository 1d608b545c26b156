package functions

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"unsafe"

	"github.com/kafka-processor/processor/processor/message"
)

// operation is what a field of aggregate keeps.
type operation string

const (
	opCount operation = "count"
	opSum   operation = "sum"
	opMin   operation = "min"
	opMax   operation = "max"
	opAvg   operation = "avg"
	opFirst operation = "first"
	opLast  operation = "last"
)

// accumulators is the state of one key: one for each field.
type accumulators struct{ fields []accumulator }

// accumulator is the state of one field.
type accumulator struct {
	value message.Value // null before the first value; of count nothing; of avg the sum, a double
	count int64         // of count and avg
	text  []byte        // what value.Str points at, so that the state holds no fetched batch
}

// set stores v, copying a string into memory that is the accumulator's own.
func (a *accumulator) set(v message.Value) {
	if v.Kind != message.String && v.Kind != message.JSON {
		a.value = v
		return
	}
	if cap(a.text) > wasteful && cap(a.text)/4 > len(v.Str) {
		a.text = nil
	}
	a.text = append(a.text[:0], v.Str...)
	a.value = message.Value{Kind: v.Kind, Str: unsafe.String(unsafe.SliceData(a.text), len(a.text))}
}

// wasteful is the size in bytes from which on a buffer that is mostly unused is given back.
const wasteful = 1024

// next computes what the accumulator becomes when v arrives, which is not null; changed is false if it stays as it is. Nothing is
// stored, so that an error leaves the state of all fields alone.
func (a *accumulator) next(op operation, v message.Value) (to message.Value, changed bool, err error) {
	switch op {
	case opSum, opAvg:
		to, err = add(a.value, v)
		return to, true, err
	case opMin, opMax:
		if v.Kind == message.Double && math.IsNaN(math.Float64frombits(v.Num)) {
			return v, false, errNaNOrder
		}
		if a.value.Kind == message.Null {
			return v, true, nil
		}
		n, err := compareValues(v, a.value)
		return v, op == opMin && n < 0 || op == opMax && n > 0, err
	case opFirst:
		return v, a.value.Kind == message.Null, nil
	case opLast:
		return v, true, nil
	}
	return v, false, nil // count has no value
}

var errNotFinite = errors.New("the sum is not a finite number")

// add is sum + v; a sum that does not fit or is no finite number is an error.
func add(sum, v message.Value) (message.Value, error) {
	switch v.Kind {
	case message.Int64:
		n, err := addInt(int64(sum.Num), int64(v.Num))
		return message.Int64Value(n), err
	case message.Uint64:
		n, err := addUint(sum.Num, v.Num)
		return message.Uint64Value(n), err
	}
	d := math.Float64frombits(sum.Num) + math.Float64frombits(v.Num)
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return v, errNotFinite
	}
	return message.DoubleValue(d), nil
}

// kept is one field as the codec sees it.
type kept struct {
	name string
	op   operation
	kind message.Kind // of value
}

// accumulatorVersion is the first byte of an encoded state. See appendAccumulator for the rest.
const accumulatorVersion = 1

// accumulatorCodec keeps accumulators as bytes: the version, then each field in the order of the spec.
type accumulatorCodec struct{ fields []kept }

// New is part of Codec.
func (c *accumulatorCodec) New() any {
	return &accumulators{fields: make([]accumulator, len(c.fields))}
}

// Append is part of Codec.
func (c *accumulatorCodec) Append(dst []byte, obj any) ([]byte, error) {
	s, ok := obj.(*accumulators)
	if !ok || len(s.fields) != len(c.fields) {
		return dst, fmt.Errorf("encode aggregate: the state is a %T that does not fit its fields", obj)
	}
	dst = append(dst, accumulatorVersion)
	for i := range s.fields {
		dst = appendAccumulator(dst, &s.fields[i], c.fields[i])
	}
	return dst, nil
}

// appendAccumulator adds one field: for count and avg the count (uvarint); for all but count a byte, 0 for null or 1, and then the
// value: int64 and timestamp as varint, uint64 as uvarint, double as 8 bytes little endian, boolean as one byte, string and JSON
// as length (uvarint) and bytes.
func appendAccumulator(dst []byte, a *accumulator, k kept) []byte {
	if k.op == opCount || k.op == opAvg {
		dst = binary.AppendUvarint(dst, uint64(a.count))
	}
	if k.op == opCount {
		return dst
	}
	if a.value.Kind == message.Null {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch k.kind {
	case message.Int64, message.Timestamp:
		return binary.AppendVarint(dst, int64(a.value.Num))
	case message.Uint64:
		return binary.AppendUvarint(dst, a.value.Num)
	case message.Double:
		return binary.LittleEndian.AppendUint64(dst, a.value.Num)
	case message.Boolean:
		return append(dst, byte(a.value.Num))
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.value.Str)))
	return append(dst, a.value.Str...)
}

// Show is Shower's: the fields by name; an avg as its sum and count.
func (c *accumulatorCodec) Show(obj any) any {
	s := obj.(*accumulators)
	out := make(map[string]any, len(c.fields))
	for i, k := range c.fields {
		a := &s.fields[i]
		switch k.op {
		case opCount:
			out[k.name] = a.count
		case opAvg:
			out[k.name] = map[string]any{"sum": showValue(a.value), "count": a.count}
		default:
			out[k.name] = showValue(a.value)
		}
	}
	return out
}

func showValue(v message.Value) any {
	switch v.Kind {
	case message.Null:
		return nil
	case message.Int64:
		return v.Int64()
	case message.Uint64:
		return v.Uint64()
	case message.Double:
		return v.Double()
	case message.Boolean:
		return v.Boolean()
	case message.Timestamp:
		if b, err := message.AppendTimestamp(nil, v.Timestamp()); err == nil {
			return string(b)
		}
		return v.Timestamp()
	case message.JSON:
		return json.RawMessage(v.Str)
	}
	return v.Str
}

// Decode is part of Codec. It takes only what Append writes.
func (c *accumulatorCodec) Decode(b []byte) (any, error) {
	s, err := c.decode(b)
	if err != nil {
		return nil, fmt.Errorf("decode aggregate: %w", err)
	}
	return s, nil
}

var (
	errShort    = errors.New("it ends early")
	errNumber   = errors.New("a number is not in its shortest form")
	errPresence = errors.New("a flag is neither 0 nor 1")
)

func (c *accumulatorCodec) decode(b []byte) (*accumulators, error) {
	if len(b) == 0 {
		return nil, errShort
	}
	if b[0] != accumulatorVersion {
		return nil, fmt.Errorf("version %d is unknown", b[0])
	}
	b = b[1:]
	s := &accumulators{fields: make([]accumulator, len(c.fields))}
	for i := range s.fields {
		var err error
		if b, err = readAccumulator(b, &s.fields[i], c.fields[i]); err != nil {
			return nil, fmt.Errorf("field %s: %w", c.fields[i].name, err)
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes are left over", len(b))
	}
	return s, nil
}

func readAccumulator(b []byte, a *accumulator, k kept) (rest []byte, err error) {
	if k.op == opCount || k.op == opAvg {
		var n uint64
		if n, b, err = readUvarint(b); err != nil {
			return b, err
		}
		if n > math.MaxInt64 {
			return b, errOverflow
		}
		a.count = int64(n)
	}
	if k.op == opCount {
		return b, nil
	}
	present, b, err := readFlag(b)
	if err != nil || present == 0 {
		return b, err
	}
	v := message.Value{Kind: k.kind}
	switch k.kind {
	case message.Int64, message.Timestamp:
		var n uint64
		n, b, err = readUvarint(b)
		v.Num = n>>1 ^ -(n & 1) // zigzag, as in AppendVarint
	case message.Uint64:
		v.Num, b, err = readUvarint(b)
	case message.Boolean:
		v.Num, b, err = readFlag(b)
	case message.Double:
		if len(b) < 8 {
			return b, errShort
		}
		v.Num, b = binary.LittleEndian.Uint64(b), b[8:]
	default:
		var n uint64
		if n, b, err = readUvarint(b); err == nil && n > uint64(len(b)) {
			err = errShort
		}
		if err == nil {
			v.Str, b = string(b[:n]), b[n:]
		}
	}
	if err == nil {
		a.set(v)
	}
	return b, err
}

func readFlag(b []byte) (flag uint64, rest []byte, err error) {
	if len(b) == 0 {
		return 0, b, errShort
	}
	if b[0] > 1 {
		return 0, b, errPresence
	}
	return uint64(b[0]), b[1:], nil
}

func readUvarint(b []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size == 0 {
		return 0, b, errShort
	}
	if size < 0 || size > 1 && b[size-1] == 0 {
		return 0, b, errNumber
	}
	return n, b[size:], nil
}

// Copy is part of Codec.
func (c *accumulatorCodec) Copy(dst, src any) any {
	from := src.(*accumulators)
	to, ok := dst.(*accumulators)
	if !ok || len(to.fields) != len(from.fields) {
		to = &accumulators{fields: make([]accumulator, len(from.fields))}
	}
	for i := range from.fields {
		to.fields[i].count = from.fields[i].count
		to.fields[i].set(from.fields[i].value)
	}
	return to
}

// Weight is part of Codec.
func (c *accumulatorCodec) Weight(obj any) int {
	s := obj.(*accumulators)
	n := int(unsafe.Sizeof(*s)) + len(s.fields)*int(unsafe.Sizeof(accumulator{}))
	for i := range s.fields {
		n += cap(s.fields[i].text)
	}
	return n
}

// Fingerprint is part of Codec: FNV-1a of the version and each field's name, operation and kind.
func (c *accumulatorCodec) Fingerprint() uint64 {
	var text bytes.Buffer
	fmt.Fprintf(&text, "aggregate/%d", accumulatorVersion)
	for _, k := range c.fields {
		fmt.Fprintf(&text, "\n%s %s %s", k.name, k.op, k.kind.String())
	}
	h := fnv.New64a()
	h.Write(text.Bytes())
	return h.Sum64()
}
