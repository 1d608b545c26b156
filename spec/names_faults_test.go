package spec

import (
	"strings"
	"testing"
)

func TestNamesThatMakeNoTopicsAreRefused(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"pipeline with capitals", []string{"pipeline: shop", "pipeline: Shop"}, `
1:11: pipeline "Shop" may have only a-z, 0-9 and -
`},
		{"pipeline too long", []string{"pipeline: shop", "pipeline: " + strings.Repeat("a", 101) + ""}, `
1:11: pipeline has 101 characters; the most is 100
`},
		{"pipeline empty", []string{"pipeline: shop", "pipeline: \"\""}, `
1:11: pipeline must not be empty
`},
		{"bad names", []string{"  lines: {", "  Li.nes: {", "[lines]\n", "[Li.nes]\n", "[lines]", "[Li.nes]", "  format:", "  f@:", "      in:", "      i n:", "      out:", "      ö:"}, `
8:3: stream name "Li.nes" may have only a-z, 0-9, _ and -
14:7: source name "i n" may have only a-z, 0-9, _ and -
17:3: computation name "f@" may have only a-z, 0-9, _ and -
31:7: sink name "ö" may have only a-z, 0-9, _ and -
`},
		{"reserved names", []string{"  lines: {", "  jobs: {", "[lines]\n", "[jobs]\n", "[lines]", "[jobs]", "  format:\n", "  state:\n", "      out:", "      outbox:", "      in:", "      42:"}, `
8:3: stream name "jobs" is reserved; reserved are jobs, control, state, outbox and names of digits only
14:7: source name "42" has digits only, which is reserved; add a letter
17:3: computation name "state" is reserved; reserved are jobs, control, state, outbox and names of digits only
31:7: sink name "outbox" is reserved; reserved are jobs, control, state, outbox and names of digits only
`},
		{"stream that collides with state", []string{"  lines: {", "  sum_state: {", "[lines]\n", "[sum_state]\n", "[lines]", "[sum_state]"}, `
24:3: the topic shop.sum.state of the state of sum collides with that of stream sum_state, since Kafka takes . and _ as equal; rename one
`},
		{"stream that collides with a reader's topic", []string{"    input_stream_ids: [keyed]\n    process: {function: map}", "    input_stream_ids: [keyed]\n    group_by_schema: [{name: id, type: string}]\n    process: {function: map}", "  lines: {", "  keyed_sum: {", "[lines]\n", "[keyed_sum]\n", "[lines]", "[keyed_sum]"}, `
8:3: the topic shop.keyed_sum of stream keyed_sum collides with that of stream keyed for sum, since Kafka takes . and _ as equal; rename one
20:5: warning: this swift_map regroups behind the swift stage read, so it runs as a transform: its outputs appear with the epoch
`},
		{"topic too long", []string{"  lines: {", "  " + strings.Repeat("l", 245) + ": {", "[lines]\n", "[" + strings.Repeat("l", 245) + "]\n", "[lines]", "[" + strings.Repeat("l", 245) + "]"}, `
8:3: the topic of stream ` + strings.Repeat("l", 245) + ` would have 250 characters; the most is 249
`},
		{"sink into the pipeline's own topic", []string{"topic: sums", "topic: shop.keyed"}, `
31:72: topic "shop.keyed" is the pipeline's own topic of stream keyed
`},
		{"source from the pipeline's own topic", []string{"topic: orders", "topic: shop_jobs"}, `
14:71: topic "shop_jobs" is the pipeline's own topic of the job logs
`},
		{"bad topics", []string{"topic: sums", "topic: my topic", "topic: orders", "topic: \"..\""}, `
14:71: topic ".." may have only letters, digits, ., _ and -
31:72: topic "my topic" may have only letters, digits, ., _ and -
`},
	})
}
