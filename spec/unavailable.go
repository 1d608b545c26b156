package spec

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// unavailable lists what is part of the spec and does not run in this version. A row goes when its feature comes. In a path
// * stands for any name or index.
var unavailable = []struct {
	path     string
	what     string
	words    []string // only these values; any value without
	except   string   // not this value
	function string   // only under this process function
	warning  bool     // read, and without effect
}{
	{path: "standby_replicas", what: "standby_replicas above 0", except: "0"},
	{path: "kafka.group_protocol", what: "group_protocol", words: []string{"consumer"}},
	{path: "computations.*.external_state_managers", what: "external_state_managers"},
	{path: "computations.*.external_state_joiners", what: "external_state_joiners"},
	{path: "computations.*.skip_if", what: "skip_if"},
	{path: "computations.*.processing_mode", what: "processing_mode", words: []string{"at_least_once_consistent"}},
	{path: "computations.*.parameters.allow_batching_with_relaxed_guarantees", what: "allow_batching_with_relaxed_guarantees", except: "false"},
	{path: "computations.*.parameters.use_compact_input_messages", what: "use_compact_input_messages", words: []string{"false"}},
	{path: "computations.*.group_by_schema.*.expression", what: "expression in group_by_schema"},
	{path: "computations.*.process.function", what: "function", words: []string{"join", "enrich", "deduplicate", "top", "reshuffle"}},
	{path: "computations.*.process.parameters.window", what: "window", function: "aggregate"},
	{path: "computations.*.process.parameters.allowed_lateness", what: "allowed_lateness", function: "aggregate"},
	{path: "computations.*.process.parameters.late_stream", what: "late_stream", function: "aggregate"},
	{path: "computations.*.sources.*.type", what: "source type", words: []string{"kafka_async", "static_table", "service_log", "generator"}},
	{path: "computations.*.sources.*.parameters.format", what: "format", words: registryFormats},
	{path: "computations.*.sources.*.watermark", what: "event time by watermark", warning: true},
	{path: "computations.*.sinks.*.type", what: "sink type", words: []string{"kafka_async", "http", "clickhouse_batching", "clickhouse_sharded", "clickhouse_at_least_once", "clickhouse_at_most_once", "arrival_order_table"}},
	{path: "computations.*.sinks.*.parameters.format", what: "format", words: registryFormats},
	{path: "dynamic.computations.*.skip_if", what: "skip_if"},
	{path: "dynamic.epoch", what: "epoch in the dynamic spec", warning: true},
	{path: "dynamic.job_tracker", what: "job_tracker in the dynamic spec", warning: true},
}

var registryFormats = []string{"avro", "protobuf", "json_schema", "row"}

// refuseUnavailable reports every use of a row of the table.
func (v *validator) refuseUnavailable() {
	for _, row := range unavailable {
		v.matches(v.s.Document.Content[0], nil, strings.Split(row.path, "."), func(p path, n *yaml.Node) {
			value, _ := Resolve(n.Value)
			switch {
			case isNull(n) || n.Kind != yaml.ScalarNode && len(n.Content) == 0:
				return
			case row.except != "" && value == row.except:
				return
			case row.words != nil && !slices.Contains(row.words, value):
				return
			case row.function != "" && v.functionAt(p) != row.function:
				return
			}
			what := row.what
			if row.words != nil {
				what += " " + value
			}
			if row.warning {
				v.warn(p, "%s is not available in this version; it is ignored", what)
				return
			}
			v.fault(p, "%s is not available in this version", what)
		})
	}
}

// functionAt is the process function of the computation that p leads into.
func (v *validator) functionAt(p path) string {
	if name, ok := p[1].(string); ok {
		if c := v.s.Computations.Get(name); c != nil {
			return c.Process.Function
		}
	}
	return ""
}

// matches calls found for every value below n that the pattern leads to.
func (v *validator) matches(n *yaml.Node, at path, pattern []string, found func(path, *yaml.Node)) {
	if len(pattern) == 0 {
		found(slices.Clone(at), n)
		return
	}
	if n.Kind == yaml.SequenceNode && pattern[0] == "*" {
		for i, c := range n.Content {
			v.matches(c, append(at, i), pattern[1:], found)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; pattern[0] == "*" || pattern[0] == name {
			v.matches(n.Content[i+1], append(at, name), pattern[1:], found)
		}
	}
}
