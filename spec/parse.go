package spec

import (
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a spec file, in bytes.
const maxFile = 8 << 20

// Load is Parse of a file.
func Load(path string) (*Spec, []Fault) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("it has %d bytes; the most is 8Mi", info.Size())
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, []Fault{{File: path, Message: "cannot read the spec: " + err.Error()}}
	}
	return Parse(path, data)
}

// Parse reads a spec strictly, fills in the defaults and returns all faults, ordered by position. The spec is nil only if
// data is no YAML mapping; otherwise it holds what could be read, so that Validate can find more faults. Faults name file.
func Parse(file string, data []byte) (*Spec, []Fault) {
	doc, faults := readDocument(file, data)
	if doc == nil {
		return nil, faults
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, Sort(append(faults, faultAt(file, root, "", "a spec is a mapping with the field pipeline, not %s", describe(root))))
	}
	s := &Spec{File: file, Document: *doc}
	d := &Decoder{file: file, faults: faults}
	d.Decode("", root, s)
	s.fillDefaults()
	d.shapes(s)
	out := s.Redact(Sort(d.faults))
	s.broken = slices.Clone(out)
	return s, out
}

// shapes checks what is kept as nodes.
func (d *Decoder) shapes(s *Spec) {
	if s.Dynamic.Kind != 0 {
		d.Decode("dynamic", &s.Dynamic, &DynamicSpec{})
	}
	for _, c := range s.Computations {
		for _, src := range c.Value.Sources {
			if src.Value.Watermark.Kind != 0 {
				d.Decode(join("computations."+c.Name+".sources", src.Name)+".watermark", &src.Value.Watermark, &Watermark{})
			}
		}
	}
}

// DecodeNode reads "fail", "skip" or a mapping.
func (o *OnError) DecodeNode(d *Decoder, path string, n *yaml.Node) {
	o.Node = *n
	var long struct {
		Policy      string   `yaml:"policy" enum:"fail,skip,dead_letter"`
		DeadLetter  string   `yaml:"dead_letter"`
		MaxAttempts int      `yaml:"max_attempts" default:"1" min:"1" max:"1000000"`
		Pause       Duration `yaml:"pause" default:"100ms" min:"0s" max:"1h"`
	}
	if n.Kind == yaml.ScalarNode {
		text, ok := d.Text(path, n)
		switch {
		case !ok:
		case text == "fail" || text == "skip":
			o.Policy = text
		default:
			d.Fault(n, path, "unknown on_error %q; known are fail, skip and {dead_letter: STREAM}", n.Value)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		d.Fault(n, path, "expected fail, skip or {dead_letter: STREAM}, found %s", describe(n))
		return
	}
	d.Decode(path, n, &long)
	o.MaxAttempts, o.Pause, o.DeadLetter = long.MaxAttempts, long.Pause, long.DeadLetter
	switch {
	case long.DeadLetter != "" && (long.Policy == "fail" || long.Policy == "skip"):
		d.Fault(n, path, "on_error has dead_letter and policy %s; keep one of them", long.Policy)
	case long.DeadLetter == "" && long.Policy == "dead_letter":
		d.Fault(n, path, "policy dead_letter needs the field dead_letter, which names a stream")
	case long.DeadLetter != "":
		o.Policy = "dead_letter"
	case long.Policy != "":
		o.Policy = long.Policy
	}
}
