package spec

import (
	"strings"
	"testing"
)

func TestGraphsThatCannotRunAreRefused(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"unknown streams", []string{"input_stream_ids: [keyed]", "input_stream_ids: [keyd]", "output_stream_id: orders", "output_stream_id: order", "[sums], parameters", "[sum], parameters", "output_stream_ids: [sums]", "output_stream_ids: [sms]"}, `
5:3: warning: stream orders is not used
9:3: warning: stream sums is not used
14:43: unknown stream "order"; did you mean "orders"?
19:24: unknown stream "keyd"; did you mean "keyed"?
29:25: unknown stream "sms"; did you mean "sums"?
31:45: unknown stream "sum"; did you mean "sums"?
`},
		{"two writers of a stream", []string{"output_stream_ids: [lines]", "output_stream_ids: [lines, sums]"}, `
29:25: stream sums is already written by format; each stream has one writer
`},
		{"source and computation write one stream", []string{"output_stream_ids: [lines]", "output_stream_ids: [lines, orders]"}, `
21:32: stream orders is already written by source in of read; each stream has one writer
`},
		{"two sources of one stream", []string{"      in: {", "      in2: {type: kafka, output_stream_id: orders, parameters: {topic: o2}}\n      in: {"}, `
15:43: stream orders is already written by source in2 of read; each stream has one writer
`},
		{"stream listed twice", []string{"output_stream_ids: [lines]", "output_stream_ids: [lines, lines]", "[sums], p", "[sums, sums], p"}, `
21:32: stream lines is listed twice
31:51: stream sums is listed twice
`},
		{"nothing writes a stream", []string{"output_stream_ids: [keyed]", "output_stream_ids: []"}, `
7:3: nothing writes stream keyed, read by format and sum
`},
		{"unused and unread streams", []string{"  lines: {", "  spare: {schema: [{name: x, type: json}]}\n  lines: {", "    sinks:\n      text: {type: kafka, input_stream_ids: [lines], parameters: {topic: text, format: text}}\n", ""}, `
8:3: warning: stream spare is not used
9:3: warning: nothing reads stream lines, which format writes
`},
		{"source stream read elsewhere", []string{"input_stream_ids: [keyed]", "input_stream_ids: [orders]"}, `
19:24: stream orders comes from source in of read and is read there only; give format a source of its own or an output stream
`},
		{"cycle", []string{"    output_stream_ids: [sums]", "    output_stream_ids: [sums, keyed]", "    output_stream_ids: [keyed]", "    output_stream_ids: []"}, `
26:5: computations must not form a cycle: sum -> sum
`},
		{"cycle of two", []string{"    input_stream_ids: [keyed]\n    process: {function: map}", "    input_stream_ids: [sums]\n    process: {function: map}", "    input_stream_ids: [keyed]\n    group_by", "    input_stream_ids: [keyed, lines]\n    group_by"}, `
26:5: computations must not form a cycle: sum -> format -> sum
26:31: stream lines has 16 partitions and the first input has 4; inputs of one stage must agree
27:30: stream lines has no column "id"
`},
		{"fused map with two heads", []string{"    input_stream_ids: [keyed]\n    process: {function: map}", "    input_stream_ids: [keyed, sums]\n    process: {function: map}"}, `
19:5: a swift_map without group_by_schema runs in the stage that writes its input, but its inputs come from read and sum; give it group_by_schema
`},
		{"swift_map that regroups behind swift", []string{"    process: {function: map}\n    output_stream_ids: [lines]", "    group_by_schema: [{name: id, type: string}]\n    process: {function: map}\n    output_stream_ids: [lines]"}, `
20:5: warning: this swift_map regroups behind the swift stage read, so it runs as a transform: its outputs appear with the epoch
`},
		{"inputs with different partitions", []string{"output_stream_ids: [lines]", "output_stream_ids: [lines, more]", "  lines: {", "  more: {schema: [{name: id, type: string}], partitions: 3}\n  lines: {", "    input_stream_ids: [keyed]\n    group_by", "    input_stream_ids: [keyed, more]\n    group_by"}, `
27:31: stream more has 3 partitions and the first input has 4; inputs of one stage must agree
`},
		{"no computations", []string{base[strings.Index(base, "computations:"):], "computations: {}"}, `
10:1: a pipeline needs at least one computation
`},
		{"more jobs than partitions", []string{"jobs: 2", "jobs: 5"}, `
2:7: warning: 5 jobs, but no internal stream has more than 4 partitions; jobs above that have work only if a source topic has more
`},
	})
}
