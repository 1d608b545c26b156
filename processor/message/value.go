package message

import (
	"math"
	"unsafe"
)

// NullValue is the absence of a value.
func NullValue() Value { return Value{} }

// StringValue is a String; the bytes need not be UTF-8.
func StringValue(s string) Value { return Value{Kind: String, Str: s} }

// BytesValue is a String that shares b's memory: b must never be written again while the value or a copy of it is in use.
func BytesValue(b []byte) Value { return Value{Kind: String, Str: stringOf(b)} }

// Int64Value is an Int64.
func Int64Value(n int64) Value { return Value{Kind: Int64, Num: uint64(n)} }

// Uint64Value is a Uint64.
func Uint64Value(n uint64) Value { return Value{Kind: Uint64, Num: n} }

// DoubleValue is a Double.
func DoubleValue(f float64) Value { return Value{Kind: Double, Num: math.Float64bits(f)} }

// BooleanValue is a Boolean.
func BooleanValue(b bool) Value {
	if b {
		return Value{Kind: Boolean, Num: 1}
	}
	return Value{Kind: Boolean}
}

// TimestampValue is a Timestamp of microseconds since 1970, UTC.
func TimestampValue(micros int64) Value { return Value{Kind: Timestamp, Num: uint64(micros)} }

// JSONValue is a JSON document, given as its text. The text is not looked at; the JSON encoder refuses one that is not JSON.
func JSONValue(text string) Value { return Value{Kind: JSON, Str: text} }

// IsNull says that there is no value.
func (v Value) IsNull() bool { return v.Kind == Null }

// Int64 is the number of an Int64; of other kinds it has no meaning.
func (v Value) Int64() int64 { return int64(v.Num) }

// Uint64 is the number of a Uint64; of other kinds it has no meaning.
func (v Value) Uint64() uint64 { return v.Num }

// Double is the number of a Double; of other kinds it has no meaning.
func (v Value) Double() float64 { return math.Float64frombits(v.Num) }

// Boolean is the truth of a Boolean; of other kinds it has no meaning.
func (v Value) Boolean() bool { return v.Num != 0 }

// Timestamp is the microseconds since 1970, UTC, of a Timestamp; of other kinds it has no meaning.
func (v Value) Timestamp() int64 { return int64(v.Num) }

// Equal says whether a and b are the same: same kind, same bytes or bits. So null equals null, NaN equals itself, 0.0 is not
// -0.0, and JSON documents are equal when their texts are.
func Equal(a, b Value) bool { return a == b }

// stringOf is b as a string without a copy. It is sound as long as b is never written again, which holds for fetched batches
// (see the package comment) and for buffers that their maker lets go of.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
