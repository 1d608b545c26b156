package spec

import (
	"testing"
)

func TestComputationsThatCannotRunAreRefused(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"source without sources", []string{"    sources:\n      in: {type: kafka, output_stream_id: orders, parameters: {topic: orders, format: json}}\n", ""}, `
5:3: warning: stream orders is not used
11:3: a swift_ordered_source needs sources
`},
		{"source with inputs", []string{"type: swift_map", "type: swift_ordered_source"}, `
17:3: a swift_ordered_source needs sources
19:5: a swift_ordered_source reads its sources; input_stream_ids is for swift_map and transform
`},
		{"map without inputs", []string{"type: swift_map\n    input_stream_ids: [keyed]", "type: swift_map"}, `
17:3: a swift_map needs input_stream_ids
`},
		{"map with sources", []string{"type: swift_ordered_source", "type: swift_map"}, `
11:3: a swift_map needs input_stream_ids
13:5: a swift_map reads input_stream_ids; sources are for swift_ordered_source and transform_ordered_source
`},
		{"swift source that groups", []string{"type: swift_ordered_source", "type: swift_ordered_source\n    group_by_schema: [{name: id, type: string}]"}, `
13:5: a swift_ordered_source does not group; group in the transform that reads its output
`},
		{"aggregate in a swift_map", []string{"process: {function: map}", "process: {function: aggregate}"}, `
20:25: aggregate keeps state, which a swift_map cannot; use a transform
`},
		{"aggregate without a key", []string{"    group_by_schema: [{name: id, type: string}]\n", ""}, `
27:25: aggregate needs group_by_schema, which says by what
`},
		{"transform without a key", []string{"type: swift_map", "type: transform"}, `
18:11: warning: without group_by_schema all messages of this transform go through partition 0
`},
		{"mode of a swift_map", []string{"type: swift_map", "type: swift_map\n    processing_mode: at_least_once_consistent"}, `
19:22: processing_mode is for transforms; a swift_map is exactly once by its ids
19:22: processing_mode at_least_once_consistent is not available in this version
`},
		{"relaxed batching of a transform", []string{"type: transform", "type: transform\n    parameters: {allow_batching_with_relaxed_guarantees: true}"}, `
26:58: allow_batching_with_relaxed_guarantees is for swift_map only
26:58: allow_batching_with_relaxed_guarantees is not available in this version
`},
		{"key columns", []string{"group_by_schema: [{name: id, type: string}]", "group_by_schema: [{name: idd, type: string}, {name: amount, type: string}, {name: amount, type: int64}]"}, `
27:30: stream keyed has no column "idd"; did you mean "id"?
27:71: column "amount" is int64 in stream keyed, not string
27:87: duplicate column "amount"
`},
		{"partitioned_by missing", []string{"type: swift_ordered_source", "type: transform_ordered_source\n    group_by_schema: [{name: id, type: string}]"}, `
15:51: group_by_schema needs partitioned_by: [id], which promises that the topic is partitioned so; else use a swift_ordered_source and a transform
`},
		{"partitioned_by differs", []string{"type: swift_ordered_source", "type: transform_ordered_source\n    group_by_schema: [{name: id, type: string}]", "format: json}", "format: json, partitioned_by: [amount, x]}"}, `
15:93: partitioned_by [amount, x] must be the columns of group_by_schema in their order: [id]
15:118: stream orders has no column "x"; did you mean "id"?
`},
		{"partitioned_by of a swift source", []string{"format: json}", "format: json, partitioned_by: [id]}"}, `
14:93: partitioned_by is for transform_ordered_source; a swift_ordered_source does not group
`},
		{"partitioned_by without a key", []string{"type: swift_ordered_source", "type: transform_ordered_source", "format: json}", "format: json, partitioned_by: [id]}"}, `
14:93: warning: partitioned_by does nothing without group_by_schema
`},
		{"duplicate and nameless columns", []string{"{name: n, type: int64}", "{name: id, type: int64}, {name: \"\", type: json}"}, `
9:52: duplicate column "id"
9:77: a column's name must not be empty
`},
		{"expression in a stream", []string{"{name: n, type: int64}", "{name: n, type: int64, expression: a}"}, `
9:80: a stream's column has no expression; that is for group_by_schema
`},
		{"stream without columns", []string{"schema: [{name: text, type: string}]", "schema: []"}, `
8:19: schema must not be empty
`},
		{"dead letter with other columns", []string{"type: swift_map", "type: swift_map\n    on_error: {dead_letter: dead}", "  lines: {", "  dead: {schema: [{name: key, type: string}]}\n  lines: {"}, `
8:10: the dead-letter stream dead must have exactly the columns key string, value string, topic string, partition int64, offset int64, computation string, error string, at timestamp
`},
		{"dead letter undeclared", []string{"type: swift_map", "type: swift_map\n    on_error: {dead_letter: dead}"}, `
19:29: unknown stream "dead"
`},
		{"dead letter with a required value", []string{"type: swift_map", "type: swift_map\n    on_error: {dead_letter: dead}", "  lines: {", "  dead: {schema: [{name: key, type: string}, {name: value, type: string, required: true}, {name: topic, type: string}, {name: partition, type: int64}, {name: offset, type: int64}, {name: computation, type: string}, {name: error, type: string}, {name: at, type: timestamp}]}\n  lines: {"}, `
8:46: column "value" of a dead-letter stream may be null, so it cannot be required
`},
		{"dead letter of two computations", []string{"type: swift_map", "type: swift_map\n    on_error: {dead_letter: dead}", "type: transform", "type: transform\n    on_error: {dead_letter: dead, max_attempts: 3, pause: 1s}", "  lines: {", "  dead: {schema: [{name: key, type: string}, {name: value, type: string}, {name: topic, type: string}, {name: partition, type: int64}, {name: offset, type: int64}, {name: computation, type: string}, {name: error, type: string}, {name: at, type: timestamp}]}\n  lines: {"}, `
28:29: stream dead is already written by format; each stream has one writer
`},
		{"start of a source", []string{"format: json}", "start: yesterday}"}, `
14:86: start "yesterday" is not earliest, latest or an RFC 3339 time such as 2030-01-31T00:00:00Z
`},
		{"text of two columns", []string{"format: json", "format: text", "topic: sums,", "topic: sums, format: raw,"}, `
14:87: format text needs exactly one column of type string; stream orders has id string, amount int64
31:86: format raw needs exactly one column of type string; stream sums has id string, n int64
`},
		{"text of another type", []string{"{name: text, type: string}", "{name: text, type: int64}"}, `
23:88: format text needs exactly one column of type string; stream lines has text int64
`},
		{"sink of another computation's stream", []string{"input_stream_ids: [lines], p", "input_stream_ids: [sums], p", "topic: text, format: text", "topic: text"}, `
8:3: warning: nothing reads stream lines, which format writes
23:46: stream sums is not an output of format; a sink takes output_stream_ids of its own computation
`},
		{"sink key columns", []string{"key: [id]", "key: [ident, id, id]"}, `
31:84: stream sums has no column "ident"
31:95: column "id" is in the key twice
`},
		{"kafka block of a kafka sink and source", []string{"input_stream_ids: [sums],", "input_stream_ids: [sums], kafka: {},", "output_stream_id: orders,", "output_stream_id: orders, kafka: {},"}, `
14:51: a source of type kafka reads the pipeline's cluster; a kafka block of its own is for kafka_async
31:52: a sink of type kafka writes to the pipeline's cluster; a kafka block of its own is for kafka_async
`},
		{"dynamic about what is not there", []string{"jobs: 2", "dynamic: {computations: {summ: {}, sum: {sinks: {outt: {}}}}}"}, `
2:26: unknown computation "summ"; did you mean "sum"?
2:50: computation sum has no sink "outt"
`},
	})
}
