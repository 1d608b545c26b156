package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNormalisedForm(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `# a comment
computations:
  read:
    process: {parameters: {z: 'x "y"', a: [1, 0x10, true, "true", 2020-01-01, "multi\nline", ~]}, function: map}
    sources: {in: {parameters: {topic: "${env:SPEC_TEST_UNSET:-t}", format: text}, output_stream_id: a, type: kafka, watermark: }}
    type: swift_ordered_source
streams: {b: &s {schema: [{type: string, name: x}], topic_settings: {z: 1, a: 2}}, a: *s}
kafka: {brokers: ["b:1"]}
dynamic: {epoch: {max_interval: 1s}}
pipeline: p
`)
	want := `pipeline: p
streams:
  b:
    schema:
      - name: x
        type: string
    topic_settings:
      a: 2
      z: 1
  a:
    schema:
      - name: x
        type: string
    topic_settings:
      a: 2
      z: 1
computations:
  read:
    type: swift_ordered_source
    sources:
      in:
        type: kafka
        output_stream_id: a
        parameters:
          topic: "${env:SPEC_TEST_UNSET:-t}"
          format: text
    process:
      function: map
      parameters:
        z: "x \"y\""
        a:
          - 1
          - 0x10
          - true
          - "true"
          - "2020-01-01"
          - "multi\nline"
          - ~
`
	if got := string(s.Normalised()); got != want {
		t.Errorf("normalised:\n%s\nwant:\n%s", got, want)
	}
}

func TestNormalisedFormOfExamplesIsItsOwnAndIgnoresLayout(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("examples %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first := mustParse(t, string(data)).Normalised()
		if again := mustParse(t, string(first)).Normalised(); !bytes.Equal(first, again) {
			t.Errorf("%s: normalised again:\n%s\nbefore:\n%s", file, again, first)
		}
		other := "# other\n" + strings.NewReplacer(": {", ":  {", ", ", " ,   ", "type: kafka,", "type: 'kafka',").Replace(string(data)) + "\n# end\n"
		if strings.Contains(other, `split("`) {
			other = strings.Replace(other, `split(" ,   ")`, `split(", ")`, 1)
		}
		if got := mustParse(t, other).Normalised(); !bytes.Equal(first, got) {
			t.Errorf("%s: layout changes the normalised form:\n%s\nwas:\n%s", file, got, first)
		}
	}
}

func TestNormalisedFormShowsEveryRealChange(t *testing.T) {
	t.Parallel()
	before := mustParse(t, base).Normalised()
	for _, change := range [][2]string{
		{"jobs: 2", "jobs: 3"}, {"topic: sums", `topic: "${env:SPEC_TEST_UNSET:-sums}"`}, {"output: sums", "output: [sums]"},
		{"name: n, type: int64", "name: n, type: double"}, {"  format:\n", "  format2:\n"},
	} {
		if after := mustParse(t, strings.Replace(base, change[0], change[1], 1)).Normalised(); bytes.Equal(before, after) {
			t.Errorf("%v does not show", change)
		}
	}
	for _, change := range [][2]string{{"127.0.0.1:9092", "other:1"}, {"jobs: 2", "jobs: 2\ndynamic: {epoch: {pace: 2}}"}} {
		if after := mustParse(t, strings.Replace(base, change[0], change[1], 1)).Normalised(); !bytes.Equal(before, after) {
			t.Errorf("%v shows, though it is not part of the static spec", change)
		}
	}
}
