package functions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// jsonDepth is how deeply arrays and objects may nest.
const jsonDepth = 256

// parseJSON gives a document as CEL values: null, bool, string, list and map; a number is an int if it is written as an integer
// and fits, else a uint if it fits, else a double. The result is a CEL error if text is not one JSON document in UTF-8, nests
// more than jsonDepth levels, repeats a member, or has a number that no double can hold.
func parseJSON(text string) ref.Val {
	if !utf8.ValidString(text) {
		return types.NewErr("JSON is not valid UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := parseElement(d, 0)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("more than one document")
		}
	}
	if err != nil {
		return types.WrapErr(fmt.Errorf("read JSON: %w", err))
	}
	return v
}

func parseElement(d *json.Decoder, depth int) (ref.Val, error) {
	if depth > jsonDepth {
		return nil, fmt.Errorf("nested more than %d levels", jsonDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			return parseArray(d, depth)
		}
		return parseObject(d, depth)
	case json.Number:
		return parseNumber(string(t))
	case string:
		return types.String(t), nil
	case bool:
		return types.Bool(t), nil
	}
	return types.NullValue, nil
}

func parseArray(d *json.Decoder, depth int) (ref.Val, error) {
	var elements []ref.Val
	for d.More() {
		v, err := parseElement(d, depth+1)
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements), nil
}

func parseObject(d *json.Decoder, depth int) (ref.Val, error) {
	members := map[ref.Val]ref.Val{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("member name %v is not a string", token)
		}
		if _, twice := members[types.String(name)]; twice {
			return nil, fmt.Errorf("member %q is repeated", name)
		}
		v, err := parseElement(d, depth+1)
		if err != nil {
			return nil, err
		}
		members[types.String(name)] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return newOrderedMap(types.NewRefValMap(types.DefaultTypeAdapter, members)), nil
}

func parseNumber(text string) (ref.Val, error) {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n), nil
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return types.Uint(n), nil
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s: %w", text, err)
	}
	return types.Double(n), nil
}

// orderedMap is a map whose iteration follows its keys, so that what an expression gives is the same at every run; the library's
// own maps iterate in random order.
type orderedMap struct {
	traits.Mapper
	keys []ref.Val
}

func newOrderedMap(m traits.Mapper) *orderedMap {
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return &orderedMap{Mapper: m, keys: keys}
}

// Iterator is part of traits.Iterable.
func (m *orderedMap) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, m.keys).Iterator()
}

// compareKeys orders booleans before numbers before strings.
func compareKeys(a, b ref.Val) int {
	rank := func(v ref.Val) int {
		switch v.(type) {
		case types.Bool:
			return 0
		case types.Int, types.Uint, types.Double:
			return 1
		}
		return 2
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	if c, ok := a.(traits.Comparer); ok {
		if n, ok := c.Compare(b).(types.Int); ok {
			return int(n)
		}
	}
	return 0
}

// orderMaps makes map literals of a program iterate in key order. It is a decorator of the interpreter's plan.
func orderMaps(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return &orderedConstructor{InterpretableV2: i}, nil
	}
	return i, nil
}

type orderedConstructor struct{ interpreter.InterpretableV2 }

// Exec is part of interpreter.InterpretableV2.
func (o *orderedConstructor) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v := o.InterpretableV2.Exec(f)
	if m, ok := v.(traits.Mapper); ok {
		return newOrderedMap(m)
	}
	return v
}

// Eval is part of interpreter.Interpretable.
func (o *orderedConstructor) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, o.Exec)
}

// appendJSON adds the JSON text of a CEL value: members in key order, timestamps in RFC 3339.
func appendJSON(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > jsonDepth {
		return dst, fmt.Errorf("nested more than %d levels", jsonDepth)
	}
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		return appendJSONNumber(dst, float64(v))
	case types.String:
		return appendJSONString(dst, string(v))
	case types.Timestamp:
		return appendJSONString(dst, v.UTC().Format(time.RFC3339Nano))
	case traits.Lister:
		return appendJSONArray(dst, v, depth)
	case traits.Mapper:
		return appendJSONObject(dst, v, depth)
	}
	return dst, fmt.Errorf("a value of type %s has no JSON form", v.Type().TypeName())
}

func appendJSONNumber(dst []byte, d float64) ([]byte, error) {
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return dst, fmt.Errorf("%v has no JSON form", d)
	}
	return strconv.AppendFloat(dst, d, 'g', -1, 64), nil
}

func appendJSONString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, errors.New("a string is not valid UTF-8 and has no JSON form")
	}
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"'), nil
}

func appendJSONArray(dst []byte, l traits.Lister, depth int) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for it, first := l.Iterator(), true; it.HasNext() == types.True; first = false {
		if !first {
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(dst, it.Next(), depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendJSONObject(dst []byte, m traits.Mapper, depth int) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for it, first := newOrderedMap(m).Iterator(), true; it.HasNext() == types.True; first = false {
		if !first {
			dst = append(dst, ',')
		}
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return dst, fmt.Errorf("a map with keys of type %s has no JSON form", key.Type().TypeName())
		}
		if dst, err = appendJSONString(dst, string(name)); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = appendJSON(dst, m.Get(key), depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
