package spec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// structure fills the fields of a struct; an empty value is an empty mapping.
func (d *Decoder) structure(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode && !isNull(n) {
		d.Fault(n, path, "expected a mapping, found %s", describe(n))
		return
	}
	d.unknown(path, n, fieldNames(v.Type()))
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		if sf.Tag.Get("spec") == "node" {
			v.Field(i).Set(reflect.ValueOf(*n))
			continue
		}
		f := fieldOf(sf)
		if !named(f.name) {
			continue
		}
		_, value := member(n, f.name)
		if value == nil || isNull(value) {
			if f.required {
				d.Fault(n, join(path, f.name), "missing field %q", f.name)
			}
			continue
		}
		d.value(join(path, f.name), value, v.Field(i), f)
		if f.required && value.Kind != yaml.ScalarNode && len(value.Content) == 0 && hasMembers(sf.Type) {
			d.Fault(value, join(path, f.name), "%s must not be empty", f.name)
		}
	}
	d.variants(path, n, v)
}

func hasMembers(t reflect.Type) bool { return t.Kind() == reflect.Slice || t.Kind() == reflect.Map }

// named reports whether a yaml tag's name makes its field part of the file.
func named(name string) bool { return name != "" && name != "-" }

// unknown reports the members of n that are no fields.
func (d *Decoder) unknown(path string, n *yaml.Node, known []string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if !slices.Contains(known, name) {
			d.Fault(n.Content[i], join(path, name), "unknown field %q%s", name, didYouMean(name, known))
		}
	}
}

// variants reads parameters into the field that belongs to the struct's type.
func (d *Decoder) variants(path string, n *yaml.Node, v reflect.Value) {
	for i := range v.NumField() {
		variant := v.Type().Field(i).Tag.Get("variant")
		if variant == "" || variant != v.FieldByName("Type").String() {
			continue
		}
		_, parameters := member(n, "parameters")
		if parameters == nil {
			parameters = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
		}
		into := reflect.New(v.Type().Field(i).Type.Elem())
		d.setDefaults(into.Elem(), "")
		d.value(join(path, "parameters"), parameters, into.Elem(), field{})
		v.Field(i).Set(into)
	}
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); named(name) {
			names = append(names, name)
		}
	}
	return names
}

// setDefaults fills v with def, the text of a default tag, and the fields of a struct with theirs. A default that does not
// parse is a mistake in a type, and panics.
func (d *Decoder) setDefaults(v reflect.Value, def string) {
	if own, ok := v.Addr().Interface().(Defaulter); ok {
		own.SetDefaults()
		return
	}
	if v.Kind() == reflect.Struct && v.Type() != nodeType && v.Type() != secretType {
		for i := range v.NumField() {
			if f := fieldOf(v.Type().Field(i)); named(f.name) {
				d.setDefaults(v.Field(i), f.def)
			}
		}
		return
	}
	if def == "" {
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		v.Index(0).SetString(def)
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: def}
	if v.Kind() == reflect.String {
		n.Tag = "!!str"
	}
	own := Decoder{}
	own.value("", n, v, field{})
	if own.faults != nil {
		panic("spec: default " + strconv.Quote(def) + " of type " + v.Type().String() + ": " + own.faults[0].Message)
	}
}
