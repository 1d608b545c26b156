package spec

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Normalised is the static spec as YAML in one fixed form: references unresolved, nothing filled in, without kafka and
// dynamic, empty members dropped. Comments, quotes, layout and the order of fields make no difference; the order of streams,
// computations, sources, sinks and of everything inside a function's parameters is kept. It parses again to the same spec,
// and its own normalised form is itself. The spec must be free of faults.
func (s *Spec) Normalised() []byte {
	if len(s.Document.Content) == 0 {
		return nil
	}
	root := canonical(s.Document.Content[0], reflect.TypeFor[Spec]())
	root.Content = dropMembers(root.Content, "kafka", "dynamic")
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	// Writing to a buffer does not fail, and a plain tree has nothing that the encoder refuses.
	if err := e.Encode(root); err != nil {
		panic("spec: encoding a plain tree: " + err.Error())
	}
	return out.Bytes()
}

func dropMembers(content []*yaml.Node, names ...string) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(content); i += 2 {
		if !slices.Contains(names, content[i].Value) {
			out = append(out, content[i], content[i+1])
		}
	}
	return out
}

// canonical copies n, which is to be decoded into t, into its fixed form.
func canonical(n *yaml.Node, t reflect.Type) *yaml.Node {
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!str" && !plainWord(n.Value) {
			out.Style = yaml.DoubleQuotedStyle
		}
	case yaml.SequenceNode:
		elem := nodeType
		if t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for _, c := range n.Content {
			out.Content = append(out.Content, canonical(c, elem))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			inStruct := t.Kind() == reflect.Struct && t != nodeType
			if inStruct && isNull(value) {
				continue
			}
			out.Content = append(out.Content, canonical(key, nodeType), canonical(value, memberType(n, t, key.Value)))
		}
		order(out, t)
	}
	return out
}

// plainWord reports whether a string needs no quotes; the encoder itself quotes words such as true.
func plainWord(s string) bool {
	return consistsOf(s, kafkaNameRunes) && consistsOf(s[:1], lowerLetters)
}

// memberType is the type that a mapping's member is decoded into; yaml.Node where nothing is known.
func memberType(n *yaml.Node, t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		if value, isMap := t.Elem().FieldByName("Value"); isMap {
			return value.Type
		}
	}
	if t.Kind() != reflect.Struct || t == nodeType {
		return nodeType
	}
	_, kind := member(n, "type")
	for i := range t.NumField() {
		f := t.Field(i)
		if v := f.Tag.Get("variant"); name == "parameters" && v != "" && kind != nil && kind.Value == v {
			return f.Type
		}
	}
	for i := range t.NumField() {
		if fieldOf(t.Field(i)).name == name {
			return t.Field(i).Type
		}
	}
	return nodeType
}

// order sorts the members of a mapping where their order means nothing: by field in a struct, by name in a map.
func order(n *yaml.Node, t reflect.Type) {
	var rank func(key string) (int, string)
	switch {
	case t.Kind() == reflect.Map:
		rank = func(key string) (int, string) { return 0, key }
	case t.Kind() == reflect.Struct && t != nodeType:
		names := fieldNames(t)
		rank = func(key string) (int, string) { return slices.Index(names, key), key }
	default:
		return
	}
	type pair struct{ key, value *yaml.Node }
	var pairs []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs = append(pairs, pair{n.Content[i], n.Content[i+1]})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		i, x := rank(a.key.Value)
		j, y := rank(b.key.Value)
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(x, y))
	})
	n.Content = n.Content[:0]
	for _, p := range pairs {
		n.Content = append(n.Content, p.key, p.value)
	}
}
