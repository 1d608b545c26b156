package spec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// NodeDecoder is a type that reads itself, such as a union. DecodeNode is not called for a missing or empty value.
type NodeDecoder interface {
	DecodeNode(d *Decoder, path string, n *yaml.Node)
}

// Defaulter is a type that sets its own defaults before it is decoded.
type Defaulter interface{ SetDefaults() }

// Decoder fills Go values from YAML nodes and collects every fault on the way.
type Decoder struct {
	file   string
	faults []Fault
}

// Decode fills into, a pointer, from node and returns all faults, with path before theirs. It is strict: unknown and repeated
// fields, wrong types and values outside a field's tags (see the package's comment) are faults. It takes structs with yaml
// tags, Map, maps with string keys, slices, pointers, scalars, Duration, Size, Secret, NodeDecoder, and yaml.Node, which is
// kept as it is. Missing and empty values leave the default. References in scalars are resolved, except in Secret and
// yaml.Node; messages never hold their values. A nil or zero node is an empty mapping. Strings are strict except in maps of
// strings, where 1 and true are taken as written.
func Decode(file, path string, node *yaml.Node, into any) []Fault {
	d := &Decoder{file: file}
	if node == nil || node.Kind == 0 {
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	// A node that Parse made is plain already; one from elsewhere may have aliases.
	p := plainer{file: file}
	d.Decode(path, p.plain(node, path), into)
	return Sort(append(p.faults, d.faults...))
}

// Decode fills into, a pointer, from n.
func (d *Decoder) Decode(path string, n *yaml.Node, into any) {
	v := reflect.ValueOf(into).Elem()
	d.setDefaults(v, "")
	d.value(path, n, v, field{})
}

// Fault records a fault at n.
func (d *Decoder) Fault(n *yaml.Node, path, format string, args ...any) {
	d.faults = append(d.faults, faultAt(d.file, n, path, format, args...))
}

// Text returns a string scalar with its references resolved; ok is false, with a fault recorded, if n is none.
func (d *Decoder) Text(path string, n *yaml.Node) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!timestamp" {
		advice := ""
		if n.Kind == yaml.ScalarNode && !isNull(n) {
			advice = "; put it in quotes"
		}
		d.Fault(n, path, "expected a string, found %s%s", describe(n), advice)
		return "", false
	}
	return d.resolve(path, n)
}

func (d *Decoder) resolve(path string, n *yaml.Node) (string, bool) {
	text, err := Resolve(n.Value)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.Fault(n, path, "%s", line)
		}
		return "", false
	}
	return text, true
}

// field is what the tags of a struct field say.
type field struct {
	name     string
	required bool
	enum     []string
	min, max string
	def      string
	scalars  bool // any scalar is taken as a string
}

func fieldOf(f reflect.StructField) field {
	out := field{min: f.Tag.Get("min"), max: f.Tag.Get("max"), def: f.Tag.Get("default")}
	out.name, _, _ = strings.Cut(f.Tag.Get("yaml"), ",")
	out.required = f.Tag.Get("spec") == "required"
	if e := f.Tag.Get("enum"); e != "" {
		out.enum = strings.Split(e, ",")
	}
	return out
}

var (
	nodeType     = reflect.TypeFor[yaml.Node]()
	durationType = reflect.TypeFor[Duration]()
	sizeType     = reflect.TypeFor[Size]()
	secretType   = reflect.TypeFor[Secret]()
)

// value fills v from n according to v's type.
func (d *Decoder) value(path string, n *yaml.Node, v reflect.Value, f field) {
	if v.Type() == nodeType {
		v.Set(reflect.ValueOf(*n))
		return
	}
	if isNull(n) && v.Kind() != reflect.Struct {
		return
	}
	if own, ok := v.Addr().Interface().(NodeDecoder); ok {
		if !isNull(n) {
			own.DecodeNode(d, path, n)
		}
		return
	}
	switch {
	case v.Type() == secretType:
		d.secret(path, n, v)
	case v.Type() == durationType:
		number(d, path, n, v, f, ParseDuration)
	case v.Type() == sizeType:
		number(d, path, n, v, f, ParseSize)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			d.setDefaults(v.Elem(), "")
		}
		d.value(path, n, v.Elem(), f)
	case v.Kind() == reflect.Struct:
		d.structure(path, n, v)
	case v.Kind() == reflect.Slice:
		d.list(path, n, v, f)
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		d.mapping(path, n, v)
	case v.Kind() == reflect.String:
		d.text(path, n, v, f)
	default:
		d.scalar(path, n, v, f)
	}
}

func (d *Decoder) secret(path string, n *yaml.Node, v reflect.Value) {
	if isNull(n) {
		return
	}
	if _, ok := d.Text(path, n); ok {
		v.Set(reflect.ValueOf(NewSecret(n.Value)))
	}
}

func (d *Decoder) text(path string, n *yaml.Node, v reflect.Value, f field) {
	var text string
	ok := false
	if f.scalars && n.Kind == yaml.ScalarNode {
		text, ok = d.resolve(path, n)
	} else {
		text, ok = d.Text(path, n)
	}
	if !ok {
		return
	}
	if f.enum != nil && !slices.Contains(f.enum, text) {
		d.Fault(n, path, "unknown %s %q%s; known are %s", noun(f.name), n.Value, didYouMean(n.Value, f.enum), strings.Join(f.enum, ", "))
		return
	}
	v.SetString(text)
}

// noun is the field's name as a word of a message.
func noun(name string) string {
	if name == "" {
		return "value"
	}
	return name
}

func (d *Decoder) scalar(path string, n *yaml.Node, v reflect.Value, f field) {
	switch v.Kind() {
	case reflect.Bool:
		if text, ok := d.tagged(path, n, "a boolean", "!!bool"); ok {
			v.SetBool(strings.EqualFold(text, "true"))
		}
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		parse := func(text string) (int64, error) {
			x, err := strconv.ParseInt(text, 0, v.Type().Bits())
			if err != nil {
				err = errors.New("out of range")
			}
			return x, err
		}
		if text, ok := d.tagged(path, n, "an integer", "!!int"); ok {
			bounded(d, path, n, text, f, parse, v.SetInt)
		}
	case reflect.Float64:
		parse := func(text string) (float64, error) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				err = errors.New("not a finite number")
			}
			return x, err
		}
		if text, ok := d.tagged(path, n, "a number", "!!float", "!!int"); ok {
			bounded(d, path, n, text, f, parse, v.SetFloat)
		}
	default:
		panic(fmt.Sprintf("spec: %s has type %s, which no YAML value can fill", path, v.Type()))
	}
}

// tagged returns the text of a scalar that has one of these YAML types; a string with references gets its type from their
// values.
func (d *Decoder) tagged(path string, n *yaml.Node, what string, tags ...string) (string, bool) {
	read := n
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && HasReference(n.Value) {
		text, ok := d.resolve(path, n)
		if !ok {
			return "", false
		}
		read = &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	}
	if read.Kind != yaml.ScalarNode || !slices.Contains(tags, read.ShortTag()) {
		d.Fault(n, path, "expected %s, found %s", what, describe(n))
		return "", false
	}
	return strings.ReplaceAll(read.Value, "_", ""), true
}

// number fills v, a Duration or Size, from a scalar.
func number[T ~int64](d *Decoder, path string, n *yaml.Node, v reflect.Value, f field, parse func(string) (T, error)) {
	if n.Kind != yaml.ScalarNode {
		d.Fault(n, path, "expected a %s, found %s", strings.ToLower(v.Type().Name()), describe(n))
		return
	}
	if text, ok := d.resolve(path, n); ok {
		bounded(d, path, n, text, f, parse, func(x T) { v.SetInt(int64(x)) })
	}
}

// bounded parses text, checks the field's bounds and stores the value. Messages show n as it is written.
func bounded[T ~int64 | ~float64](d *Decoder, path string, n *yaml.Node, text string, f field, parse func(string) (T, error), set func(T)) {
	x, err := parse(text)
	if err != nil {
		d.Fault(n, path, "%q is %v", n.Value, err)
		return
	}
	if low, err := parse(f.min); f.min != "" && err == nil && x < low {
		d.Fault(n, path, "%s is too small; the least is %s", n.Value, f.min)
		return
	}
	if high, err := parse(f.max); f.max != "" && err == nil && x > high {
		d.Fault(n, path, "%s is too large; the most is %s", n.Value, f.max)
		return
	}
	set(x)
}

func (d *Decoder) list(path string, n *yaml.Node, v reflect.Value, f field) {
	if n.Kind != yaml.SequenceNode {
		d.Fault(n, path, "expected a list, found %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		member := fmt.Sprintf("%s[%d]", path, i)
		d.setDefaults(out.Index(i), "")
		if isNull(c) {
			d.Fault(c, member, "this member of the list is empty")
			continue
		}
		d.value(member, c, out.Index(i), field{enum: f.enum, name: f.name})
	}
	v.Set(out)
}

func (d *Decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.Fault(n, path, "expected a mapping, found %s", describe(n))
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.setDefaults(elem, "")
		d.value(join(path, n.Content[i].Value), n.Content[i+1], elem, field{scalars: true})
		out.SetMapIndex(reflect.ValueOf(n.Content[i].Value).Convert(v.Type().Key()), elem)
	}
	v.Set(out)
}

// DecodeNode reads a mapping in its order.
func (m *Map[T]) DecodeNode(d *Decoder, path string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.Fault(n, path, "expected a mapping, found %s", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := Entry[T]{Name: n.Content[i].Value, Node: n.Content[i]}
		v := reflect.ValueOf(&e.Value).Elem()
		d.setDefaults(v, "")
		d.value(join(path, e.Name), n.Content[i+1], v, field{scalars: true})
		*m = append(*m, e)
	}
}
