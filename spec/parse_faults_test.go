package spec

import (
	"testing"
)

func TestEveryFaultOfParsingHasItsPlace(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"the base is good", []string{}, `
`},
		{"unknown field", []string{"    sources:\n", "    sourcs:\n"}, `
5:3: warning: stream orders is not used
11:3: a swift_ordered_source needs sources
13:5: unknown field "sourcs"; did you mean "sources"?
`},
		{"unknown field without a near name", []string{"jobs: 2", "zzzzzzzz: 2"}, `
2:1: unknown field "zzzzzzzz"
`},
		{"unknown field in a list", []string{"required: true", "requird: true"}, `
6:39: unknown field "requird"; did you mean "required"?
`},
		{"unknown kafka source parameter", []string{"format: json}", "formt: json}"}, `
14:79: unknown field "formt"; did you mean "format"?
`},
		{"unknown kafka sink parameter", []string{"topic: sums, key", "topik: sums, key"}, `
31:64: missing field "topic"
31:65: unknown field "topik"; did you mean "topic"?
`},
		{"duplicate key", []string{"jobs: 2", "jobs: 2\njobs: 3"}, `
3:1: duplicate key "jobs", first in line 2
`},
		{"duplicate stream", []string{"  lines: {", "  keyed: {"}, `
8:3: duplicate key "keyed", first in line 7
21:25: unknown stream "lines"
23:46: unknown stream "lines"
`},
		{"wrong types", []string{"jobs: 2", "jobs: two", "[\"127.0.0.1:9092\"]", "127.0.0.1", "partitions: 4", "partitions: 4.5", "topic: orders", "topic: 5", "[keyed]\n  format", "keyed\n  format"}, `
2:7: expected an integer, found a string
3:18: expected a list, found a string
7:3: nothing writes stream keyed, read by format and sum
7:88: expected an integer, found a number
14:71: expected a string, found an integer; put it in quotes
16:24: expected a list, found a string
`},
		{"wrong shape of a map", []string{"  lines: {schema: [{name: text, type: string}]}", "  lines: [a]"}, `
8:10: expected a mapping, found a list
`},
		{"quoted number", []string{"jobs: 2", "jobs: \"2\""}, `
2:7: expected an integer, found a string
`},
		{"missing fields", []string{"pipeline: shop\n", "", "type: swift_map\n", "on_error: fail\n", "{topic: text, format: text}", "{format: text}", "process: {function: map}", "process: {}"}, `
1:1: missing field "pipeline"
17:5: missing field "type"
19:14: missing field "function"
22:66: missing field "topic"
`},
		{"empty required list", []string{"input_stream_ids: [sums]", "input_stream_ids: []"}, `
9:3: warning: nothing reads stream sums, which sum writes
31:44: input_stream_ids must not be empty
`},
		{"empty member", []string{"[sums]\n    sinks", "[sums, ~]\n    sinks"}, `
29:31: this member of the list is empty
`},
		{"bad duration and size", []string{"jobs: 2", "epoch: {max_interval: 5, settle: fast, max_bytes: 64Q}\nlease: {ttl: [1s]}"}, `
2:23: "5" is not a duration such as 100ms, 5s or 1m30s
2:34: "fast" is not a duration such as 100ms, 5s or 1m30s
2:51: "64Q" is not a size such as 4096, 10M or 64Mi
3:14: expected a duration, found a list
`},
		{"values out of bounds", []string{"jobs: 2", "jobs: 0\nepoch: {pace: 0, max_records: 0, max_bytes: 1}\nlease: {ttl: 1ms}", "partitions: 4", "partitions: 0"}, `
2:7: 0 is too small; the least is 1
3:15: 0 is too small; the least is 0.01
3:31: 0 is too small; the least is 1
3:45: 1 is too small; the least is 1Ki
4:14: 1ms is too small; the least is 1s
9:88: 0 is too small; the least is 1
`},
		{"number too large for its type", []string{"kafka: {", "kafka: {replication_factor: 99999, "}, `
3:29: "99999" is out of range
`},
		{"not finite", []string{"jobs: 2", "epoch: {pace: .nan}"}, `
2:15: ".nan" is not a finite number
`},
		{"unknown words", []string{"type: swift_map", "type: swift_mab", "type: int64", "type: int32", "type: kafka", "type: kafk", "format: json", "format: xml"}, `
6:77: unknown type "int32"; did you mean "int64"?; known are string, int64, uint64, double, boolean, timestamp, json
14:18: unknown type "kafk"; did you mean "kafka"?; known are kafka, kafka_async, static_table, service_log, generator
18:11: unknown type "swift_mab"; did you mean "swift_map"?; known are swift_ordered_source, transform_ordered_source, swift_map, transform
`},
		{"boolean expected", []string{"required: true", "required: yes"}, `
6:49: expected a boolean, found a string
`},
		{"on_error unknown word", []string{"type: swift_map", "type: swift_map\n    on_error: ignore"}, `
19:15: unknown on_error "ignore"; known are fail, skip and {dead_letter: STREAM}
`},
		{"on_error of two minds", []string{"type: swift_map", "type: swift_map\n    on_error: {policy: skip, dead_letter: lines, max_attempts: 0, paus: 1s}"}, `
8:11: the dead-letter stream lines must have exactly the columns key string, value string, topic string, partition int64, offset int64, computation string, error string, at timestamp
19:15: on_error has dead_letter and policy skip; keep one of them
19:64: 0 is too small; the least is 1
19:67: unknown field "paus"; did you mean "pause"?
`},
		{"on_error without its stream", []string{"type: swift_map", "type: swift_map\n    on_error: {policy: dead_letter}"}, `
19:15: policy dead_letter needs the field dead_letter, which names a stream
`},
		{"on_error list", []string{"type: swift_map", "type: swift_map\n    on_error: [skip]"}, `
19:15: expected fail, skip or {dead_letter: STREAM}, found a list
`},
		{"two documents", []string{"jobs: 2", "jobs: 2\n---\npipeline: other\n---"}, `
1:1: a pipeline needs at least one computation
3:1: a spec file has one document; this is the start of another
`},
		{"key that is no text", []string{"jobs: 2", "{a: b}: 2"}, `
2:1: a key must be plain text, not a mapping
`},
		{"unknown tag", []string{"jobs: 2", "jobs: !big 2"}, `
2:7: the tag !big is not supported
`},
		{"anchor within itself", []string{"jobs: 2", "dynamic: &x {computations: *x}"}, `
2:28: the anchor x contains itself
`},
		{"merge of a scalar", []string{"kafka: {", "kafka: {<<: 5, "}, `
3:13: a merge key << takes a mapping or a list of mappings, not an integer
`},
		{"fault in an anchor is reported once", []string{"jobs: 2", "jobs: 2\ndynamic: {computations: {read: &e {skp: 1}, sum: *e}}"}, `
3:36: unknown field "skp"
`},
		{"unknown dynamic field", []string{"jobs: 2", "dynamic: {epoch: {max_intervall: 1s}, computations: {read: {sink: {}}}}"}, `
2:11: warning: epoch in the dynamic spec is not available in this version; it is ignored
2:19: unknown field "max_intervall"; did you mean "max_interval"?
2:61: unknown field "sink"; did you mean "sinks"?
`},
		{"unknown watermark field", []string{"format: json}}", "format: json}, watermark: {timestmp: kafka}}"}, `
14:94: warning: event time by watermark is not available in this version; it is ignored
14:105: missing field "timestamp"
14:106: unknown field "timestmp"; did you mean "timestamp"?
`},
		{"all at once", []string{"jobs: 2", "jobs: -1", "type: swift_map", "typ: swift_map", "[id]}}", "[idd]}}"}, `
2:7: -1 is too small; the least is 1
18:5: unknown field "typ"; did you mean "type"?
18:5: missing field "type"
31:84: stream sums has no column "idd"; did you mean "id"?
`},
	})
}
