package functions

import (
	"errors"
	"math"
	"math/bits"
	"strings"

	"cel.dev/cel-go/common/operators"

	"github.com/kafka-processor/processor/processor/message"
)

// Why an operator or function of an expression fails.
var (
	errNull         = errors.New("no such overload: an operand is null")
	errOverflow     = errors.New("integer overflow")
	errUintOverflow = errors.New("unsigned integer overflow")
	errDivideByZero = errors.New("division by zero")
	errModulusZero  = errors.New("modulus by zero")
	errNaNOrder     = errors.New("NaN values cannot be ordered")
)

// both evaluates two operands, of which none may be null.
func both(f *Frame, a, b evaluator) (x, y message.Value, err error) {
	if x, err = a(f); err != nil {
		return x, y, err
	}
	if y, err = b(f); err != nil {
		return x, y, err
	}
	if x.Kind == message.Null || y.Kind == message.Null {
		return x, y, errNull
	}
	return x, y, nil
}

// arithmetic is a + b, a - b, a * b, a / b, a % b on two numbers of one kind, and a + b on strings.
func arithmetic(name string, nodes []node) (node, bool) {
	if len(nodes) != 2 || nodes[0].open || !nodes[1].is(nodes[0].kind) {
		return node{}, false
	}
	a, b := nodes[0].eval, nodes[1].eval
	switch kind := nodes[0].kind; kind {
	case message.Int64:
		if op := intOperator(name); op != nil {
			return node{kind: kind, eval: func(f *Frame) (message.Value, error) {
				x, y, err := both(f, a, b)
				if err != nil {
					return x, err
				}
				n, err := op(int64(x.Num), int64(y.Num))
				return message.Int64Value(n), err
			}}, true
		}
	case message.Uint64:
		if op := uintOperator(name); op != nil {
			return node{kind: kind, eval: func(f *Frame) (message.Value, error) {
				x, y, err := both(f, a, b)
				if err != nil {
					return x, err
				}
				n, err := op(x.Num, y.Num)
				return message.Uint64Value(n), err
			}}, true
		}
	case message.Double:
		if op := doubleOperator(name); op != nil {
			return node{kind: kind, eval: func(f *Frame) (message.Value, error) {
				x, y, err := both(f, a, b)
				if err != nil {
					return x, err
				}
				return message.DoubleValue(op(math.Float64frombits(x.Num), math.Float64frombits(y.Num))), nil
			}}, true
		}
	case message.String:
		if name == operators.Add {
			return node{kind: kind, eval: func(f *Frame) (message.Value, error) {
				x, y, err := both(f, a, b)
				if err != nil {
					return x, err
				}
				return message.StringValue(f.concat(x.Str, y.Str)), nil
			}}, true
		}
	}
	return node{}, false
}

func intOperator(name string) func(x, y int64) (int64, error) {
	switch name {
	case operators.Add:
		return addInt
	case operators.Subtract:
		return func(x, y int64) (int64, error) {
			d := x - y
			if (x < 0) != (y < 0) && (d < 0) != (x < 0) {
				return 0, errOverflow
			}
			return d, nil
		}
	case operators.Multiply:
		return multiplyInt
	case operators.Divide:
		return func(x, y int64) (int64, error) {
			if y == 0 {
				return 0, errDivideByZero
			}
			if x == math.MinInt64 && y == -1 {
				return 0, errOverflow
			}
			return x / y, nil
		}
	case operators.Modulo:
		return func(x, y int64) (int64, error) {
			if y == 0 {
				return 0, errModulusZero
			}
			if x == math.MinInt64 && y == -1 {
				return 0, errOverflow
			}
			return x % y, nil
		}
	}
	return nil
}

func addInt(x, y int64) (int64, error) {
	s := x + y
	if (x < 0) == (y < 0) && (s < 0) != (x < 0) {
		return 0, errOverflow
	}
	return s, nil
}

func multiplyInt(x, y int64) (int64, error) {
	if x == 0 || y == 0 {
		return 0, nil
	}
	p := x * y
	if x == -1 && y == math.MinInt64 || y == -1 && x == math.MinInt64 || p/y != x {
		return 0, errOverflow
	}
	return p, nil
}

func addUint(x, y uint64) (uint64, error) {
	s, carry := bits.Add64(x, y, 0)
	if carry != 0 {
		return 0, errUintOverflow
	}
	return s, nil
}

func uintOperator(name string) func(x, y uint64) (uint64, error) {
	switch name {
	case operators.Add:
		return addUint
	case operators.Subtract:
		return func(x, y uint64) (uint64, error) {
			if y > x {
				return 0, errUintOverflow
			}
			return x - y, nil
		}
	case operators.Multiply:
		return func(x, y uint64) (uint64, error) {
			high, low := bits.Mul64(x, y)
			if high != 0 {
				return 0, errUintOverflow
			}
			return low, nil
		}
	case operators.Divide:
		return func(x, y uint64) (uint64, error) {
			if y == 0 {
				return 0, errDivideByZero
			}
			return x / y, nil
		}
	case operators.Modulo:
		return func(x, y uint64) (uint64, error) {
			if y == 0 {
				return 0, errModulusZero
			}
			return x % y, nil
		}
	}
	return nil
}

func doubleOperator(name string) func(x, y float64) float64 {
	switch name {
	case operators.Add:
		return func(x, y float64) float64 { return x + y }
	case operators.Subtract:
		return func(x, y float64) float64 { return x - y }
	case operators.Multiply:
		return func(x, y float64) float64 { return x * y }
	case operators.Divide:
		return func(x, y float64) float64 { return x / y }
	}
	return nil
}

// negative is -a.
func negative(a node) (node, bool) {
	eval := a.eval
	switch {
	case a.is(message.Int64):
		return node{kind: a.kind, eval: func(f *Frame) (message.Value, error) {
			x, err := notNull(f, eval)
			if err == nil && int64(x.Num) == math.MinInt64 {
				err = errOverflow
			}
			return message.Int64Value(-int64(x.Num)), err
		}}, true
	case a.is(message.Double):
		return node{kind: a.kind, eval: func(f *Frame) (message.Value, error) {
			x, err := notNull(f, eval)
			return message.DoubleValue(-math.Float64frombits(x.Num)), err
		}}, true
	}
	return node{}, false
}

func notNull(f *Frame, a evaluator) (message.Value, error) {
	x, err := a(f)
	if err == nil && x.Kind == message.Null {
		err = errNull
	}
	return x, err
}

// compareValues orders two values of one kind; Timestamp and Int64 by their number, strings by their bytes.
func compareValues(x, y message.Value) (int, error) {
	switch x.Kind {
	case message.String:
		return strings.Compare(x.Str, y.Str), nil
	case message.Int64, message.Timestamp:
		return order(int64(x.Num), int64(y.Num)), nil
	case message.Double:
		a, b := math.Float64frombits(x.Num), math.Float64frombits(y.Num)
		if a != a || b != b {
			return 0, errNaNOrder
		}
		return order(a, b), nil
	}
	return order(x.Num, y.Num), nil
}

func order[T int64 | uint64 | float64](a, b T) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// comparison is a < b and its like on two values of one kind.
func comparison(name string, a, b node) (node, bool) {
	if a.open || !b.is(a.kind) || a.kind == message.Null || a.kind == message.JSON {
		return node{}, false
	}
	var holds [3]bool // for less, equal, greater
	switch name {
	case operators.Less:
		holds = [3]bool{true, false, false}
	case operators.LessEquals:
		holds = [3]bool{true, true, false}
	case operators.Greater:
		holds = [3]bool{false, false, true}
	case operators.GreaterEquals:
		holds = [3]bool{false, true, true}
	}
	left, right := a.eval, b.eval
	if a.kind == message.Double {
		return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
			return compareDoubles(f, left, right, &holds)
		}}, true
	}
	return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
		x, y, err := both(f, left, right)
		if err != nil {
			return x, err
		}
		n, err := compareValues(x, y)
		return message.BooleanValue(holds[n+1]), err
	}}, true
}

// compareDoubles is comparison of doubles. As in the library, no comparison with NaN holds, not even one of NaN with null.
func compareDoubles(f *Frame, left, right evaluator, holds *[3]bool) (message.Value, error) {
	x, err := left(f)
	if err != nil {
		return x, err
	}
	y, err := right(f)
	if err != nil {
		return y, err
	}
	a, b := math.Float64frombits(x.Num), math.Float64frombits(y.Num)
	switch {
	case x.Kind == message.Null:
		return x, errNull
	case a != a:
		return message.BooleanValue(false), nil
	case y.Kind == message.Null:
		return y, errNull
	case b != b:
		return message.BooleanValue(false), nil
	}
	return message.BooleanValue(holds[order(a, b)+1]), nil
}

// equalValues is CEL's equality of two values of one kind or null: null equals null, NaN nothing.
func equalValues(x, y message.Value) bool {
	if x.Kind != y.Kind {
		return false
	}
	switch x.Kind {
	case message.Null:
		return true
	case message.String:
		return x.Str == y.Str
	case message.Double:
		return math.Float64frombits(x.Num) == math.Float64frombits(y.Num)
	}
	return x.Num == y.Num
}

// equality is a == b, or a != b if not equal, of values of one kind, or of any and null.
func equality(a, b node, equal bool) (node, bool) {
	if a.open || b.open || a.kind == message.JSON || b.kind == message.JSON ||
		a.kind != b.kind && a.kind != message.Null && b.kind != message.Null {
		return node{}, false
	}
	left, right := a.eval, b.eval
	return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
		x, err := left(f)
		if err != nil {
			return x, err
		}
		y, err := right(f)
		return message.BooleanValue(equalValues(x, y) == equal), err
	}}, true
}

// junction is && or, if decisive is true, ||: the decisive value of one term settles it even if another term fails.
func junction(terms []node, decisive bool) (node, bool) {
	evals := make([]evaluator, len(terms))
	for i, t := range terms {
		if !t.is(message.Boolean) {
			return node{}, false
		}
		evals[i] = t.eval
	}
	return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
		var failed error
		for _, eval := range evals {
			v, err := notNull(f, eval)
			if err == nil && (v.Num != 0) == decisive {
				return v, nil
			}
			if err != nil && failed == nil {
				failed = err
			}
		}
		return message.BooleanValue(!decisive), failed
	}}, true
}

// negation is !a.
func negation(a node) (node, bool) {
	if !a.is(message.Boolean) {
		return node{}, false
	}
	eval := a.eval
	return node{kind: message.Boolean, eval: func(f *Frame) (message.Value, error) {
		v, err := notNull(f, eval)
		return message.BooleanValue(v.Num == 0), err
	}}, true
}

// conditional is c ? a : b.
func conditional(c, a, b node) (node, bool) {
	if !c.is(message.Boolean) {
		return node{}, false
	}
	n := node{kind: a.kind, open: a.open || b.open || a.kind != b.kind}
	test, then, otherwise := c.eval, a.eval, b.eval
	n.eval = func(f *Frame) (message.Value, error) {
		v, err := notNull(f, test)
		if err != nil {
			return v, err
		}
		if v.Num != 0 {
			return then(f)
		}
		return otherwise(f)
	}
	return n, true
}
