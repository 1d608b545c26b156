package spec

import (
	"testing"
)

func TestWhatThisVersionLacksIsRefused(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"standbys and consumer protocol", []string{"jobs: 2", "standby_replicas: 1", "kafka: {", "kafka: {group_protocol: consumer, "}, `
2:19: standby_replicas above 0 is not available in this version
3:25: group_protocol consumer is not available in this version
`},
		{"joiners and managers", []string{"type: transform", "type: transform\n    external_state_managers: {t: {type: kafka_table, parameters: {path: /t}}}\n    external_state_joiners: {j: {type: state, ttl: 1s}}"}, `
26:5: external_state_managers is not available in this version
27:5: external_state_joiners is not available in this version
`},
		{"skip_if, modes and switches", []string{"type: transform", "type: transform\n    skip_if: 'false'\n    processing_mode: at_least_once_consistent\n    parameters: {use_compact_input_messages: false}", "jobs: 2", "dynamic: {computations: {sum: {skip_if: 'true'}}}"}, `
2:41: skip_if is not available in this version
26:14: skip_if is not available in this version
27:22: processing_mode at_least_once_consistent is not available in this version
28:46: use_compact_input_messages false is not available in this version
`},
		{"relaxed batching", []string{"type: swift_map", "type: swift_map\n    parameters: {allow_batching_with_relaxed_guarantees: true}"}, `
19:58: allow_batching_with_relaxed_guarantees is not available in this version
`},
		{"expression in a key", []string{"[{name: id, type: string}]\n    process: {function: aggregate", "[{name: h, type: uint64, expression: farm_hash(id)}]\n    process: {function: aggregate"}, `
27:59: expression in group_by_schema is not available in this version
`},
		{"functions", []string{"function: map,", "function: deduplicate,", "function: map}", "function: top}"}, `
15:25: function deduplicate is not available in this version
20:25: function top is not available in this version
`},
		{"windows", []string{"output: sums", "output: sums, window: {type: tumbling, size: 1m}, allowed_lateness: 1s, late_stream: lines"}, `
28:63: window is not available in this version
28:117: allowed_lateness is not available in this version
28:134: late_stream is not available in this version
`},
		{"window of another function is its own affair", []string{"outputs: []", "window: 1"}, `
`},
		{"source types", []string{"type: kafka,", "type: generator,"}, `
14:18: source type generator is not available in this version
`},
		{"sink types and formats", []string{"topic: text, format: text", "topic: text, format: avro", "out: {type: kafka", "out: {type: http"}, `
23:88: format avro is not available in this version
31:19: sink type http is not available in this version
`},
		{"source formats", []string{"format: json", "format: protobuf"}, `
14:87: format protobuf is not available in this version
`},
		{"dynamic epoch", []string{"jobs: 2", "jobs: 2\ndynamic: {epoch: {pace: 2}}"}, `
3:11: warning: epoch in the dynamic spec is not available in this version; it is ignored
`},
		{"watermark", []string{"format: json}}", "format: json}, watermark: {timestamp: kafka, max_out_of_orderness: 1s, idle_timeout: 30s}}"}, `
14:94: warning: event time by watermark is not available in this version; it is ignored
`},
		{"state manager without a path", []string{"type: transform", "type: transform\n    external_state_managers: {t: {type: postgres_table}}"}, `
26:5: external_state_managers is not available in this version
26:31: a state manager needs parameters.path, which names the table
`},
		{"at their defaults they are fine", []string{"jobs: 2", "standby_replicas: 0", "type: swift_map", "type: swift_map\n    processing_mode: exactly_once\n    external_state_joiners: {}\n    parameters: {allow_batching_with_relaxed_guarantees: false, use_compact_input_messages: true}"}, `
`},
	})
}
