package spec

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type testUnion struct{ text, field string }

func (u *testUnion) DecodeNode(d *Decoder, path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		u.text, _ = d.Text(path, n)
		return
	}
	var long struct {
		Field string `yaml:"field" spec:"required"`
	}
	d.Decode(path, n, &long)
	u.field = long.Field
}

type testParameters struct {
	Output  string            `yaml:"output" spec:"required"`
	Emit    string            `yaml:"emit" default:"update" enum:"update,close"`
	Fields  Map[testUnion]    `yaml:"fields"`
	Columns map[string]string `yaml:"columns"`
	Limits  map[string]int    `yaml:"limits"`
	Ratio   *float64          `yaml:"ratio" min:"0" max:"1"`
	Every   Duration          `yaml:"every" default:"2s"`
	Bytes   Size              `yaml:"bytes"`
	Key     Secret            `yaml:"key"`
	Raw     yaml.Node         `yaml:"raw"`
	List    []testUnion       `yaml:"list"`
	Flag    bool              `yaml:"flag"`
}

func decodeText(t *testing.T, text string) (testParameters, []string) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	var p testParameters
	var got []string
	for _, f := range Decode("f", "p", &doc, &p) {
		got = append(got, f.String()+" @ "+f.Path)
	}
	return p, got
}

func TestDecodeFillsParameters(t *testing.T) {
	t.Parallel()
	p, faults := decodeText(t, `
output: "${env:SPEC_TEST_UNSET:-sums}"
fields: {z: plain, a: {field: long}}
columns: {one: 1, yes: true, text: row.x}
limits: {a: 0x10, b: 1_000}
ratio: 0.5
bytes: 64Ki
key: ${env:SPEC_TEST_UNSET:-k}
raw: &r {any: [thing, "${env:SPEC_TEST_UNSET:-x}"]}
list: [a, {field: b}]
flag: true
`)
	if faults != nil {
		t.Fatalf("faults: %q", faults)
	}
	if p.Output != "sums" || p.Emit != "update" || p.Every != Duration(2*time.Second) || p.Bytes != 65536 || *p.Ratio != 0.5 || !p.Flag {
		t.Errorf("scalars %+v", p)
	}
	if len(p.Fields) != 2 || p.Fields[0].Name != "z" || p.Fields[0].Value.text != "plain" || p.Fields[1].Value.field != "long" || p.Fields[1].Node.Line != 3 {
		t.Errorf("fields %+v", p.Fields)
	}
	if p.Columns["one"] != "1" || p.Columns["yes"] != "true" || p.Columns["text"] != "row.x" || p.Limits["a"] != 16 || p.Limits["b"] != 1000 {
		t.Errorf("maps %v %v", p.Columns, p.Limits)
	}
	if p.Raw.Kind != yaml.MappingNode || p.Raw.Content[1].Content[1].Value != "${env:SPEC_TEST_UNSET:-x}" {
		t.Errorf("raw node %+v", p.Raw)
	}
	if value, err := p.Key.Reveal(); err != nil || value != "k" {
		t.Errorf("secret %q, %v", value, err)
	}
	if len(p.List) != 2 || p.List[0].text != "a" || p.List[1].field != "b" {
		t.Errorf("list %+v", p.List)
	}
}

func TestDecodeReportsEveryFaultWithItsPath(t *testing.T) {
	t.Parallel()
	_, got := decodeText(t, `
outpt: x
emit: closed
fields: {a: {}, b: [1]}
columns: {c: [x]}
limits: {a: b}
ratio: 2
every: [1s]
key: 5
list: [1]
flag: "true"
flag: true
`)
	want := []string{
		`f:2:1: missing field "output" @ p.output`,
		`f:2:1: unknown field "outpt"; did you mean "output"? @ p.outpt`,
		`f:3:7: unknown emit "closed"; did you mean "close"?; known are update, close @ p.emit`,
		`f:4:13: missing field "field" @ p.fields.a.field`,
		`f:4:20: expected a mapping, found a list @ p.fields.b`,
		`f:5:14: expected a string, found a list @ p.columns.c`,
		`f:6:13: expected an integer, found a string @ p.limits.a`,
		`f:7:8: 2 is too large; the most is 1 @ p.ratio`,
		`f:8:8: expected a duration, found a list @ p.every`,
		`f:9:6: expected a string, found an integer; put it in quotes @ p.key`,
		`f:10:8: expected a string, found an integer; put it in quotes @ p.list[0]`,
		`f:11:7: expected a boolean, found a string @ p.flag`,
		`f:12:1: duplicate key "flag", first in line 11 @ p.flag`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDecodeOfNothingGivesDefaultsAndMissingFields(t *testing.T) {
	t.Parallel()
	for _, n := range []*yaml.Node{nil, {}} {
		var p testParameters
		faults := Decode("f", "p", n, &p)
		if len(faults) != 1 || faults[0].String() != `f: missing field "output"` || p.Emit != "update" {
			t.Errorf("faults %v, parameters %+v", faults, p)
		}
	}
}
