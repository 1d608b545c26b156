package functions

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"cel.dev/cel-go/common/overloads"

	"github.com/kafka-processor/processor/processor/message"
)

// made is the string of what was added to the arena since it had n bytes. It shares the arena's memory, which is written again
// only after release; when the arena grows it moves, and earlier strings keep the old memory alive.
func (f *Frame) made(n int) string {
	b := f.arena[n:]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// concat adds b to a, in place if a is the last string made.
func (f *Frame) concat(a, b string) string {
	if b == "" {
		return a
	}
	if a == "" {
		return b
	}
	start := len(f.arena) - len(a)
	if start < 0 || unsafe.StringData(a) != unsafe.SliceData(f.arena[start:]) {
		start = len(f.arena)
		f.arena = append(f.arena, a...)
	}
	f.arena = append(f.arena, b...)
	return f.made(start)
}

// textFunction is a function on strings, named as in CEL and its strings extension; nodes[0] is the string.
func textFunction(name string, nodes []node) (node, bool) {
	if len(nodes) == 0 {
		return node{}, false
	}
	for i, n := range nodes {
		if want := argumentKind(name, i); !n.is(want) {
			return node{}, false
		}
	}
	switch len(nodes) {
	case 1:
		return unaryText(name, nodes[0].eval)
	case 2:
		return binaryText(name, nodes[0].eval, nodes[1].eval)
	case 3:
		return ternaryText(name, nodes[0].eval, nodes[1].eval, nodes[2].eval)
	}
	return node{}, false
}

func argumentKind(name string, i int) message.Kind {
	if name == "substring" && i > 0 {
		return message.Int64
	}
	return message.String
}

func unaryText(name string, a evaluator) (node, bool) {
	if name == overloads.Size {
		return node{kind: message.Int64, eval: func(f *Frame) (message.Value, error) {
			v, err := notNull(f, a)
			return message.Int64Value(int64(utf8.RuneCountInString(v.Str))), err
		}}, true
	}
	var op func(f *Frame, s string) string
	switch name {
	case "lowerAscii":
		op = func(f *Frame, s string) string { return f.mapASCII(s, 'A', 'Z') }
	case "upperAscii":
		op = func(f *Frame, s string) string { return f.mapASCII(s, 'a', 'z') }
	case "reverse":
		op = (*Frame).reverse
	case "trim":
		op = func(_ *Frame, s string) string { return strings.TrimSpace(s) }
	default:
		return node{}, false
	}
	return node{kind: message.String, eval: func(f *Frame) (message.Value, error) {
		v, err := notNull(f, a)
		if err != nil {
			return v, err
		}
		return message.StringValue(op(f, v.Str)), nil
	}}, true
}

func binaryText(name string, a, b evaluator) (node, bool) {
	if name == "substring" {
		return node{kind: message.String, eval: func(f *Frame) (message.Value, error) {
			x, y, err := both(f, a, b)
			if err != nil {
				return x, err
			}
			s, err := f.substring(x.Str, int64(y.Num), -1)
			return message.StringValue(s), err
		}}, true
	}
	var test func(s, t string) bool
	switch name {
	case overloads.Contains:
		test = strings.Contains
	case overloads.StartsWith:
		test = strings.HasPrefix
	case overloads.EndsWith:
		test = strings.HasSuffix
	default:
		return node{}, false
	}
	return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
		x, y, err := both(f, a, b)
		if err != nil {
			return x, err
		}
		return message.BooleanValue(test(x.Str, y.Str)), nil
	}}, true
}

func ternaryText(name string, a, b, c evaluator) (node, bool) {
	if name != "substring" && name != "replace" {
		return node{}, false
	}
	return node{kind: message.String, eval: func(f *Frame) (message.Value, error) {
		x, y, err := both(f, a, b)
		if err != nil {
			return x, err
		}
		z, err := notNull(f, c)
		if err != nil {
			return x, err
		}
		if name == "replace" {
			return message.StringValue(f.replace(x.Str, y.Str, z.Str)), nil
		}
		start, end := int64(y.Num), int64(z.Num)
		if start > end || end < 0 {
			return x, fmt.Errorf("invalid substring range. start: %d, end: %d", start, end)
		}
		s, err := f.substring(x.Str, start, end)
		return message.StringValue(s), err
	}}, true
}

// mapASCII gives s with the letters from first to last in the other case. As in the library, a byte that is no valid UTF-8
// becomes U+FFFD.
func (f *Frame) mapASCII(s string, first, last byte) string {
	changes, ascii := false, true
	for i := 0; i < len(s); i++ {
		changes = changes || s[i] >= first && s[i] <= last
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if !ascii {
		valid := utf8.ValidString(s)
		changes = changes || !valid
		if !valid {
			s = f.repaired(s)
		}
	}
	if !changes {
		return s
	}
	n := len(f.arena)
	f.arena = append(f.arena, s...)
	b := f.arena[n:]
	for i, c := range b {
		if c >= first && c <= last {
			b[i] = c ^ 0x20
		}
	}
	return f.made(n)
}

// repaired gives s with U+FFFD for each byte that is no valid UTF-8.
func (f *Frame) repaired(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	n := len(f.arena)
	for _, r := range s {
		f.arena = utf8.AppendRune(f.arena, r)
	}
	return f.made(n)
}

// reverse gives the code points of s in reverse order.
func (f *Frame) reverse(s string) string {
	s = f.repaired(s)
	n := len(f.arena)
	f.arena = append(f.arena, s...)
	b := f.arena[n:]
	end := len(b)
	for i := 0; i < len(s); {
		size := 1
		if s[i] >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		end -= size
		copy(b[end:end+size], s[i:i+size])
		i += size
	}
	return f.made(n)
}

// substring gives the code points from start to end, counted from 0; end -1 is the end of s.
func (f *Frame) substring(s string, start, end int64) (string, error) {
	from, ok := byteOffset(s, start)
	if !ok {
		return "", fmt.Errorf("index out of range: %d", start)
	}
	to := len(s)
	if end >= 0 {
		length, ok := byteOffset(s[from:], end-start)
		if !ok {
			return "", fmt.Errorf("index out of range: %d", end)
		}
		to = from + length
	}
	return f.repaired(s[from:to]), nil
}

// byteOffset is where code point n of s begins; the end of s counts as one.
func byteOffset(s string, n int64) (int, bool) {
	if n < 0 || n > int64(len(s)) {
		return 0, false
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i, n == 0
}

// replace is strings.ReplaceAll.
func (f *Frame) replace(s, old, by string) string {
	if old == "" {
		return strings.ReplaceAll(s, old, by)
	}
	if !strings.Contains(s, old) {
		return s
	}
	n := len(f.arena)
	for {
		i := strings.Index(s, old)
		if i < 0 {
			f.arena = append(f.arena, s...)
			return f.made(n)
		}
		f.arena = append(append(f.arena, s[:i]...), by...)
		s = s[i+len(old):]
	}
}

// convert is string(a), int(a), uint(a), double(a).
func convert(name string, nodes []node) (node, bool) {
	if len(nodes) != 1 || nodes[0].open {
		return node{}, false
	}
	var op func(f *Frame, v message.Value) (message.Value, error)
	to := message.Null
	switch name {
	case overloads.TypeConvertString:
		op, to = toString(nodes[0].kind), message.String
	case overloads.TypeConvertInt:
		op, to = toInt(nodes[0].kind), message.Int64
	case overloads.TypeConvertUint:
		op, to = toUint(nodes[0].kind), message.Uint64
	case overloads.TypeConvertDouble:
		op, to = toDouble(nodes[0].kind), message.Double
	}
	if op == nil {
		return node{}, false
	}
	a := nodes[0].eval
	return node{kind: to, eval: func(f *Frame) (message.Value, error) {
		v, err := notNull(f, a)
		if err != nil {
			return v, err
		}
		return op(f, v)
	}}, true
}

func toString(from message.Kind) func(*Frame, message.Value) (message.Value, error) {
	var add func(dst []byte, v message.Value) []byte
	switch from {
	case message.String:
		return func(_ *Frame, v message.Value) (message.Value, error) { return v, nil }
	case message.Int64:
		add = func(dst []byte, v message.Value) []byte { return strconv.AppendInt(dst, int64(v.Num), 10) }
	case message.Uint64:
		add = func(dst []byte, v message.Value) []byte { return strconv.AppendUint(dst, v.Num, 10) }
	case message.Double:
		add = func(dst []byte, v message.Value) []byte {
			return strconv.AppendFloat(dst, math.Float64frombits(v.Num), 'g', -1, 64)
		}
	case message.Timestamp:
		add = func(dst []byte, v message.Value) []byte {
			return time.UnixMicro(int64(v.Num)).UTC().AppendFormat(dst, time.RFC3339Nano)
		}
	default:
		return nil
	}
	return func(f *Frame, v message.Value) (message.Value, error) {
		n := len(f.arena)
		f.arena = add(f.arena, v)
		return message.StringValue(f.made(n)), nil
	}
}

func toInt(from message.Kind) func(*Frame, message.Value) (message.Value, error) {
	switch from {
	case message.String:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			n, err := strconv.ParseInt(v.Str, 10, 64)
			return message.Int64Value(n), err
		}
	case message.Int64:
		return func(_ *Frame, v message.Value) (message.Value, error) { return v, nil }
	case message.Uint64:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			if v.Num > math.MaxInt64 {
				return v, errOverflow
			}
			return message.Int64Value(int64(v.Num)), nil
		}
	case message.Double:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			d := math.Float64frombits(v.Num)
			if !(d > math.MinInt64 && d < math.MaxInt64) {
				return v, errOverflow
			}
			return message.Int64Value(int64(d)), nil
		}
	case message.Timestamp:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			return message.Int64Value(time.UnixMicro(int64(v.Num)).Unix()), nil
		}
	}
	return nil
}

func toUint(from message.Kind) func(*Frame, message.Value) (message.Value, error) {
	switch from {
	case message.String:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			n, err := strconv.ParseUint(v.Str, 10, 64)
			return message.Uint64Value(n), err
		}
	case message.Int64:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			if int64(v.Num) < 0 {
				return v, errUintOverflow
			}
			return message.Uint64Value(v.Num), nil
		}
	case message.Uint64:
		return func(_ *Frame, v message.Value) (message.Value, error) { return v, nil }
	case message.Double:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			d := math.Float64frombits(v.Num)
			if !(d >= 0 && d < 1<<64) {
				return v, errUintOverflow
			}
			return message.Uint64Value(uint64(d)), nil
		}
	}
	return nil
}

func toDouble(from message.Kind) func(*Frame, message.Value) (message.Value, error) {
	switch from {
	case message.String:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			d, err := strconv.ParseFloat(v.Str, 64)
			return message.DoubleValue(d), err
		}
	case message.Int64:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			return message.DoubleValue(float64(int64(v.Num))), nil
		}
	case message.Uint64:
		return func(_ *Frame, v message.Value) (message.Value, error) {
			return message.DoubleValue(float64(v.Num)), nil
		}
	case message.Double:
		return func(_ *Frame, v message.Value) (message.Value, error) { return v, nil }
	}
	return nil
}
