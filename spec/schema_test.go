package spec

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestSchemaDescribesEveryField(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	definitions := schema["$defs"].(map[string]any)
	check := func(of reflect.Type, definition map[string]any) {
		properties := definition["properties"].(map[string]any)
		for _, name := range fieldNames(of) {
			p, ok := properties[name].(map[string]any)
			if !ok || p["description"] == "" || p["description"] == nil {
				t.Errorf("%s.%s has no description: %v", of.Name(), name, p)
			}
		}
	}
	check(reflect.TypeFor[Spec](), schema)
	for _, of := range []reflect.Type{
		reflect.TypeFor[Kafka](), reflect.TypeFor[TLS](), reflect.TypeFor[SASL](), reflect.TypeFor[Epoch](), reflect.TypeFor[Lease](),
		reflect.TypeFor[JobTracker](), reflect.TypeFor[StateCache](), reflect.TypeFor[Stream](), reflect.TypeFor[Column](),
		reflect.TypeFor[Computation](), reflect.TypeFor[Source](), reflect.TypeFor[KafkaSource](), reflect.TypeFor[Watermark](),
		reflect.TypeFor[Process](), reflect.TypeFor[Sink](), reflect.TypeFor[KafkaSink](), reflect.TypeFor[StateManager](),
		reflect.TypeFor[StateJoiner](), reflect.TypeFor[DynamicSpec](), reflect.TypeFor[DynamicComputation](),
	} {
		definition, ok := definitions[of.Name()].(map[string]any)
		if !ok {
			t.Errorf("no definition of %s", of.Name())
			continue
		}
		check(of, definition)
	}
}

func TestSchemaHasEnumsDefaultsAndBounds(t *testing.T) {
	t.Parallel()
	var schema struct {
		Required   []string
		Properties map[string]struct{ Default any }
		Defs       map[string]struct {
			Properties map[string]struct {
				Default any
				AnyOf   []struct {
					Enum             []string
					Minimum, Maximum *float64
					AnyOf            []struct {
						Enum             []string
						Minimum, Maximum *float64
					}
				}
			}
			AllOf []any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.Required) != 1 || schema.Required[0] != "pipeline" || schema.Properties["jobs"].Default != 1.0 {
		t.Errorf("required %v, jobs %v", schema.Required, schema.Properties["jobs"])
	}
	if enum := schema.Defs["Computation"].Properties["type"].AnyOf[0].Enum; len(enum) != 4 || enum[0] != SwiftOrderedSource {
		t.Errorf("computation types %v", enum)
	}
	epoch := schema.Defs["Epoch"].Properties
	if epoch["max_bytes"].Default != "64Mi" || epoch["max_interval"].Default != "100ms" || epoch["pace"].Default != 1.0 {
		t.Errorf("epoch defaults %+v", epoch)
	}
	if records := epoch["max_records"].AnyOf[0].AnyOf[0]; *records.Minimum != 1 || *records.Maximum != 1e7 {
		t.Errorf("bounds of max_records %+v", records)
	}
	if len(schema.Defs["Sink"].AllOf) != 1 || len(schema.Defs["Source"].AllOf) != 1 {
		t.Error("parameters of type kafka are not described")
	}
}
