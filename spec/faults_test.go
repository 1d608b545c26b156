package spec

import (
	"strings"
	"testing"
)

// base is a good spec without warnings; the cases change a piece of it.
const base = `pipeline: shop
jobs: 2
kafka: {brokers: ["127.0.0.1:9092"]}
streams:
  orders:
    schema: [{name: id, type: string, required: true}, {name: amount, type: int64}]
  keyed: {schema: [{name: id, type: string}, {name: amount, type: int64}], partitions: 4}
  lines: {schema: [{name: text, type: string}]}
  sums: {schema: [{name: id, type: string}, {name: n, type: int64}]}
computations:
  read:
    type: swift_ordered_source
    sources:
      in: {type: kafka, output_stream_id: orders, parameters: {topic: orders, format: json}}
    process: {function: map, parameters: {outputs: []}}
    output_stream_ids: [keyed]
  format:
    type: swift_map
    input_stream_ids: [keyed]
    process: {function: map}
    output_stream_ids: [lines]
    sinks:
      text: {type: kafka, input_stream_ids: [lines], parameters: {topic: text, format: text}}
  sum:
    type: transform
    input_stream_ids: [keyed]
    group_by_schema: [{name: id, type: string}]
    process: {function: aggregate, parameters: {output: sums}}
    output_stream_ids: [sums]
    sinks:
      out: {type: kafka, input_stream_ids: [sums], parameters: {topic: sums, key: [id]}}
`

// change is old and new text, alternating.
type faultCase struct {
	name   string
	change []string
	want   string // faults, one a line, without the file
}

func allFaults(data string) string {
	s, faults := Parse("f", []byte(data))
	faults = Sort(append(faults, Validate(s)...))
	var out strings.Builder
	for _, f := range faults {
		out.WriteString(strings.TrimPrefix(f.String(), "f:") + "\n")
	}
	return out.String()
}

func runFaultCases(t *testing.T, cases []faultCase) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := base
			for i := 0; i < len(c.change); i += 2 {
				if !strings.Contains(data, c.change[i]) {
					t.Fatalf("no %q to change", c.change[i])
				}
				data = strings.Replace(data, c.change[i], c.change[i+1], 1)
			}
			if got := allFaults(data); got != strings.TrimLeft(c.want, "\n") {
				t.Errorf("faults:\n%swant:\n%s", got, c.want)
			}
		})
	}
}
