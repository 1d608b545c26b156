package spec

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// object is one JSON object of a schema.
type object = map[string]any

// shapes are the types of fields that are kept as nodes, by their `shape` tag.
var shapes = map[string]reflect.Type{
	"DynamicSpec": reflect.TypeFor[DynamicSpec](),
	"Watermark":   reflect.TypeFor[Watermark](),
}

// JSONSchema is the JSON Schema (draft 2020-12) of a spec file, for editors. It comes from the same tags as the decoder's
// checks, so it accepts at least what Parse accepts.
func JSONSchema() []byte {
	g := schemaMaker{definitions: object{}}
	root := g.structure(reflect.TypeFor[Spec]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Pipeline of the processor"
	root["$defs"] = g.definitions
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("spec: a schema is maps, lists and scalars: " + err.Error())
	}
	return append(out, '\n')
}

// schemaMaker collects the definitions of the struct types that it meets.
type schemaMaker struct{ definitions object }

// referenceText is a string with a reference, which may stand for any scalar.
func referenceText() object {
	return object{"type": "string", "pattern": `\$\{(env|file):`}
}

func orReference(o object) object { return object{"anyOf": []any{o, referenceText()}} }

const (
	durationPattern = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(k|M|G|Ki|Mi|Gi)?$`
)

// of is the schema of a type.
func (g *schemaMaker) of(t reflect.Type, f field) object {
	switch t {
	case nodeType:
		return object{}
	case durationType:
		return orReference(object{"type": "string", "pattern": durationPattern})
	case sizeType:
		return orReference(object{"anyOf": []any{object{"type": "integer", "minimum": 0}, object{"type": "string", "pattern": sizePattern}}})
	case secretType:
		return object{"type": "string"}
	case reflect.TypeFor[OnError]():
		return onErrorSchema()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem(), f)
	case reflect.Struct:
		return g.reference(t)
	case reflect.Slice:
		if entry := t.Elem(); entry.Kind() == reflect.Struct {
			if value, isMap := entry.FieldByName("Value"); isMap {
				names := object{"pattern": "^[a-z0-9_-]+$"}
				return object{"type": "object", "propertyNames": names, "additionalProperties": nullable(g.of(value.Type, field{}))}
			}
		}
		return object{"type": "array", "items": g.of(t.Elem(), f)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": object{"type": []any{"string", "number", "boolean"}}}
	case reflect.Bool:
		return orReference(object{"type": "boolean"})
	case reflect.String:
		if f.enum != nil {
			return orReference(object{"enum": f.enum})
		}
		return object{"type": "string"}
	case reflect.Float64:
		return orReference(limits(object{"type": "number"}, f))
	default:
		return orReference(limits(object{"type": "integer"}, f))
	}
}

// nullable also takes an empty value, which reads as a missing one.
func nullable(o object) object { return object{"anyOf": []any{o, object{"type": "null"}}} }

func limits(o object, f field) object {
	if f.min != "" {
		o["minimum"] = json.Number(f.min)
	}
	if f.max != "" {
		o["maximum"] = json.Number(f.max)
	}
	return o
}

func (g *schemaMaker) reference(t reflect.Type) object {
	if _, known := g.definitions[t.Name()]; !known {
		g.definitions[t.Name()] = nil // ends the recursion of a type that holds itself
		g.definitions[t.Name()] = g.structure(t)
	}
	return object{"$ref": "#/$defs/" + t.Name()}
}

func (g *schemaMaker) structure(t reflect.Type) object {
	properties := object{}
	var required []string
	var variants []any
	for i := range t.NumField() {
		sf := t.Field(i)
		if v := sf.Tag.Get("variant"); v != "" {
			variants = append(variants, object{
				"if":   object{"properties": object{"type": object{"const": v}}},
				"then": object{"properties": object{"parameters": g.of(sf.Type, field{})}},
			})
		}
		f := fieldOf(sf)
		if !named(f.name) {
			continue
		}
		properties[f.name] = g.property(sf, f)
		if f.required {
			required = append(required, f.name)
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		out["required"] = required
	}
	if variants != nil {
		out["allOf"] = variants
	}
	return out
}

func (g *schemaMaker) property(sf reflect.StructField, f field) object {
	t := sf.Type
	if shape, ok := shapes[sf.Tag.Get("shape")]; ok {
		t = shape
	}
	p := g.of(t, f)
	if !f.required && t != nodeType {
		p = nullable(p)
	}
	p["description"] = sf.Tag.Get("doc")
	if f.def != "" {
		p["default"] = defaultValue(t, f.def)
	}
	return p
}

// defaultValue is the text of a default tag as JSON.
func defaultValue(t reflect.Type, def string) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType || t == sizeType || t.Kind() == reflect.String:
		return def
	case t.Kind() == reflect.Slice:
		return strings.Split(def, ",")
	case t.Kind() == reflect.Bool:
		b, _ := strconv.ParseBool(def)
		return b
	}
	return json.Number(def)
}

func onErrorSchema() object {
	var o OnError
	o.SetDefaults()
	long := object{
		"policy":       object{"enum": []string{"fail", "skip", "dead_letter"}, "default": o.Policy, "description": "fail parks and retries, skip drops and counts."},
		"dead_letter":  object{"type": "string", "description": "Stream that takes the failing messages."},
		"max_attempts": object{"type": "integer", "minimum": 1, "default": o.MaxAttempts, "description": "Attempts before the policy applies."},
		"pause":        object{"type": "string", "pattern": durationPattern, "default": o.Pause.String(), "description": "Between attempts."},
	}
	return object{"anyOf": []any{
		object{"enum": []string{"fail", "skip"}},
		object{"type": "object", "properties": long, "additionalProperties": false},
	}}
}
