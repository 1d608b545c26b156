package functions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"

	"github.com/kafka-processor/processor/processor/message"
)

// allKinds has a nullable and a required column of every kind.
func allKinds() *message.Schema {
	var all []message.Column
	for kind, name := range columnOfKind {
		all = append(all,
			message.Column{Name: name, Kind: message.Kind(kind + 1)},
			message.Column{Name: name + "r", Kind: message.Kind(kind + 1), Required: true})
	}
	return message.MustSchema(all...)
}

var columnOfKind = [...]string{"s", "i", "u", "d", "b", "t"} // in the order of message.Kind

var (
	someStrings = []string{"", "a", "Zebra", "héllo WÖRLD", "\xff\xe2\x82A", "€uro", " \t x ", "42", "-7", "1e3", "a,b,,c", "aaa", "\xed\xa0\x80z"}
	someInts    = []int64{0, 1, -1, 2, 7, -13, 1 << 40, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 3037000500}
	someUints   = []uint64{0, 1, 2, 10, 1 << 40, 1 << 32, math.MaxInt64, math.MaxUint64}
	someDoubles = []float64{0, math.Copysign(0, -1), 1, -2.5, 1e300, -1e300, 9.223372036854775807e18, 1.8446744073709552e19,
		1e21, 1e20, 1e-5, 0.1, math.NaN(), math.Inf(1), math.Inf(-1)}
	someTimes = []int64{0, 1, -1, -1_500_000, 1_700_000_000_123_456, 1_700_000_000_000_000}
)

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func someValue(r *rand.Rand, k message.Kind) message.Value {
	switch k {
	case message.String:
		return message.StringValue(pick(r, someStrings))
	case message.Int64:
		return message.Int64Value(pick(r, someInts))
	case message.Uint64:
		return message.Uint64Value(pick(r, someUints))
	case message.Double:
		return message.DoubleValue(pick(r, someDoubles))
	case message.Boolean:
		return message.BooleanValue(r.IntN(2) == 0)
	}
	return message.TimestampValue(pick(r, someTimes))
}

func someRow(r *rand.Rand, s *message.Schema) message.Row {
	row := make(message.Row, len(s.Columns))
	for i, c := range s.Columns {
		if c.Required || r.IntN(4) > 0 {
			row[i] = someValue(r, c.Kind)
		}
	}
	return row
}

// generator writes random expressions of the subset that is translated.
type generator struct{ *rand.Rand }

func (g generator) sub(k message.Kind, depth int) string { return g.expression(k, depth-1) }

func (g generator) call(depth int, format string, kinds ...message.Kind) string {
	args := make([]any, len(kinds))
	for i, k := range kinds {
		args[i] = g.sub(k, depth)
	}
	return fmt.Sprintf(format, args...)
}

func (g generator) expression(k message.Kind, depth int) string {
	if depth <= 0 {
		return g.leaf(k)
	}
	if g.IntN(8) == 0 {
		return g.call(depth, "(%s ? %s : %s)", message.Boolean, k, k)
	}
	switch k {
	case message.String:
		return g.text(depth)
	case message.Boolean:
		return g.boolean(depth)
	case message.Int64:
		switch g.IntN(8) {
		case 0:
			return g.call(depth, "size(%s)", message.String)
		case 1:
			return g.call(depth, "-(%s)", k)
		case 2:
			return g.call(depth, "int(%s)", pick(g.Rand, []message.Kind{message.String, message.Int64, message.Uint64, message.Double, message.Timestamp}))
		}
		return g.call(depth, "(%s "+pick(g.Rand, []string{"+", "-", "*", "/", "%%"})+" %s)", k, k)
	case message.Uint64:
		if g.IntN(4) == 0 {
			return g.call(depth, "uint(%s)", pick(g.Rand, []message.Kind{message.String, message.Int64, message.Uint64, message.Double}))
		}
		return g.call(depth, "(%s "+pick(g.Rand, []string{"+", "-", "*", "/", "%%"})+" %s)", k, k)
	case message.Double:
		switch g.IntN(5) {
		case 0:
			return g.call(depth, "double(%s)", pick(g.Rand, []message.Kind{message.String, message.Int64, message.Uint64, message.Double}))
		case 1:
			return g.call(depth, "-(%s)", k)
		}
		return g.call(depth, "(%s "+pick(g.Rand, []string{"+", "-", "*", "/"})+" %s)", k, k)
	}
	return g.leaf(k)
}

func (g generator) text(depth int) string {
	s := message.String
	switch g.IntN(9) {
	case 0:
		return g.call(depth, "%s.lowerAscii()", s)
	case 1:
		return g.call(depth, "%s.upperAscii()", s)
	case 2:
		return g.call(depth, "%s.reverse()", s)
	case 3:
		return g.call(depth, "%s.trim()", s)
	case 4:
		return g.call(depth, "%s.substring("+strconv.Itoa(g.IntN(5)-1)+")", s)
	case 5:
		return g.call(depth, "%s.substring("+strconv.Itoa(g.IntN(5)-1)+", "+strconv.Itoa(g.IntN(7)-1)+")", s)
	case 6:
		return g.call(depth, "%s.replace(%s, %s)", s, s, s)
	case 7:
		return g.call(depth, "string(%s)", pick(g.Rand, []message.Kind{s, message.Int64, message.Uint64, message.Double, message.Timestamp}))
	}
	return g.call(depth, "(%s + %s)", s, s)
}

func (g generator) boolean(depth int) string {
	b := message.Boolean
	any := message.Kind(1 + g.IntN(6))
	switch g.IntN(10) {
	case 0:
		return g.call(depth, "!(%s)", b)
	case 1:
		return g.call(depth, "(%s && %s)", b, b)
	case 2:
		return g.call(depth, "(%s || %s && %s || %s)", b, b, b, b)
	case 3:
		return "has(row." + g.columnName(any) + ")"
	case 4:
		return g.call(depth, "%s."+pick(g.Rand, []string{"contains", "startsWith", "endsWith"})+"(%s)", message.String, message.String)
	case 5:
		return "row." + columnOfKind[any-1] + pick(g.Rand, []string{" == null", " != null"})
	case 6:
		if any == message.Timestamp {
			any = message.String
		}
		members := make([]string, 1+g.IntN(13))
		for i := range members {
			members[i] = g.literal(any)
		}
		return g.call(depth, "(%s in ["+strings.ReplaceAll(strings.Join(members, ", "), "%", "%%")+"])", any)
	}
	return g.call(depth, "(%s "+pick(g.Rand, []string{"==", "!=", "<", "<=", ">", ">="})+" %s)", any, any)
}

func (g generator) columnName(k message.Kind) string {
	return columnOfKind[k-1] + pick(g.Rand, []string{"", "r"})
}

func (g generator) leaf(k message.Kind) string {
	switch {
	case k == message.Timestamp:
		return pick(g.Rand, []string{"timestamp", "row.t", "row.tr", "key.tr"})
	case k == message.String && g.IntN(8) == 0:
		return pick(g.Rand, []string{"stream", "item"})
	case g.IntN(3) == 0:
		return g.literal(k)
	}
	return pick(g.Rand, []string{"row.", "key."}) + g.columnName(k)
}

func (g generator) literal(k message.Kind) string {
	switch k {
	case message.String:
		return strconv.Quote(strings.ToValidUTF8(pick(g.Rand, someStrings), "?"))
	case message.Int64:
		if n := pick(g.Rand, someInts); n != math.MinInt64 {
			return "(" + strconv.FormatInt(n, 10) + ")"
		}
		return "3"
	case message.Uint64:
		return strconv.FormatUint(pick(g.Rand, someUints), 10) + "u"
	case message.Double:
		if d := pick(g.Rand, someDoubles); !math.IsNaN(d) && !math.IsInf(d, 0) {
			return "(" + strconv.FormatFloat(d, 'f', 1, 64) + ")"
		}
		return "0.5"
	}
	return pick(g.Rand, []string{"true", "false"})
}

func sameValue(a, b message.Value) bool {
	if a.Kind == message.Double && b.Kind == message.Double {
		x, y := math.Float64frombits(a.Num), math.Float64frombits(b.Num)
		return a.Num == b.Num || x != x && y != y
	}
	return a == b
}

// bothWays prepares an expression as closures and as a program; ok is false if CEL refuses it.
func bothWays(t *testing.T, env *environment, text string) (n node, program cel.Program, ok bool) {
	t.Helper()
	checked, _ := env.check(text, nil)
	if checked == nil {
		return node{}, nil, false
	}
	n, translated := env.translate(checked.NativeRep().Expr())
	if !translated {
		t.Fatalf("%s is not translated", text)
	}
	program, err := env.program(checked)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n, program, true
}

func TestClosuresGiveWhatTheInterpreterGives(t *testing.T) {
	t.Parallel()
	seed := uint64(20261201)
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	schema := allKinds()
	base, err := newEnvironment(Scope{Stream: "In Put", Row: schema, Key: schema})
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.withItem(cel.StringType)
	if err != nil {
		t.Fatal(err)
	}
	const expressions, rows = 3000, 8
	accepted, values, failures := 0, 0, 0
	for range expressions {
		text := g.expression(message.Kind(1+g.IntN(6)), 1+g.IntN(4))
		n, program, ok := bothWays(t, env, text)
		if !ok {
			continue
		}
		accepted++
		for range rows {
			var f Frame
			f.Begin(&Message{Row: someRow(g.Rand, schema), KeyRow: someRow(g.Rand, schema), EventTime: pick(g.Rand, someTimes)}, &env.Scope)
			f.item = message.StringValue(pick(g.Rand, someStrings))
			out, _, slowErr := program.Eval(&f)
			fast, fastErr := n.eval(&f)
			if (slowErr == nil) != (fastErr == nil) {
				t.Fatalf("seed %d: %s on %v\nclosures: %v %v\nprogram: %v %v", seed, text, f.row.row, fast, fastErr, out, slowErr)
			}
			if slowErr != nil {
				failures++
				continue
			}
			values++
			if slow, plain := fromCEL(out); !plain || !sameValue(slow, fast) {
				t.Fatalf("seed %d: %s on %v\nclosures: %+v\nprogram: %+v", seed, text, f.row.row, fast, slow)
			}
		}
	}
	if accepted < expressions/2 || values < expressions || failures < expressions {
		t.Errorf("accepted %d of %d expressions, %d values, %d failures: too few to show anything", accepted, expressions, values, failures)
	}
	t.Logf("%d expressions, %d values, %d failures", accepted, values, failures)
}
