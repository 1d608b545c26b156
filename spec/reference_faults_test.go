package spec

import (
	"testing"
)

func TestEveryFaultOfAReferenceHasItsPlace(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"missing variable", []string{"topic: sums", "topic: \"${env:SPEC_TEST_UNSET}\""}, `
31:72: environment variable SPEC_TEST_UNSET is not set; set it, or give a default as in ${env:SPEC_TEST_UNSET:-default}
`},
		{"missing variables in one value", []string{"topic: sums", "topic: \"${env:SPEC_TEST_UNSET}-${env:SPEC_TEST_UNSET2}\""}, `
31:72: environment variable SPEC_TEST_UNSET is not set; set it, or give a default as in ${env:SPEC_TEST_UNSET:-default}
31:72: environment variable SPEC_TEST_UNSET2 is not set; set it, or give a default as in ${env:SPEC_TEST_UNSET2:-default}
`},
		{"missing variable in a function's parameters", []string{"output: sums", "output: \"${env:SPEC_TEST_UNSET}\""}, `
28:57: environment variable SPEC_TEST_UNSET is not set; set it, or give a default as in ${env:SPEC_TEST_UNSET:-default}
`},
		{"missing file", []string{"kafka: {", "kafka: {sasl: {mechanism: plain, username: u, password: \"${file:/nonexistent/secret}\"}, "}, `
3:57: referenced file: open /nonexistent/secret: no such file or directory
`},
		{"bad variable name", []string{"topic: sums", "topic: \"${env:A B}\""}, `
31:72: a reference needs the name of an environment variable: ${env:NAME}
`},
		{"reference without its end", []string{"topic: sums", "topic: \"${env:A\""}, `
31:72: a reference lacks its closing }
`},
		{"reference in a key", []string{"output: sums", "\"${env:HOME}\": sums"}, `
28:49: references are not resolved in keys
`},
		{"default that is no number", []string{"jobs: 2", "jobs: \"${env:SPEC_TEST_UNSET:-many}\""}, `
2:7: expected an integer, found a string
`},
		{"default out of bounds", []string{"jobs: 2", "jobs: \"${env:SPEC_TEST_UNSET:-0}\""}, `
2:7: ${env:SPEC_TEST_UNSET:-0} is too small; the least is 1
`},
		{"default that is no known word", []string{"format: json", "format: \"${env:SPEC_TEST_UNSET:-xml}\""}, `
14:87: unknown format "${env:SPEC_TEST_UNSET:-xml}"; known are json, text, raw, avro, protobuf, json_schema, row
`},
	})
}
