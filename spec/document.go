package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds a document after its aliases are expanded.
const maxNodes = 200_000

// syntaxLine finds the line in the YAML library's errors, which have no other position.
var syntaxLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// fromParser tells the errors of the library's parser from those of its scanner.
var fromParser = regexp.MustCompile(`^did not find expected (<|node content|'-' indicator|key|',' or)`)

// readDocument gives the one document of data as a plain tree: no aliases, merge keys, comments or repeated keys. It returns
// nil if data is no YAML or has no document.
func readDocument(file string, data []byte) (*yaml.Node, []Fault) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && isNull(doc.Content[0]):
		return nil, []Fault{{File: file, Line: 1, Column: 1, Message: "the spec is empty"}}
	case err != nil:
		return nil, []Fault{syntaxFault(file, data, err)}
	}
	p := plainer{file: file}
	root := p.plain(doc.Content[0], "")
	switch err := decoder.Decode(&second); {
	case err == nil:
		p.fault(&second, "", "a spec file has one document; this is the start of another")
	case !errors.Is(err, io.EOF):
		p.faults = append(p.faults, syntaxFault(file, data, err))
	}
	return &yaml.Node{Kind: yaml.DocumentNode, Line: root.Line, Column: root.Column, Content: []*yaml.Node{root}}, p.faults
}

func syntaxFault(file string, data []byte, err error) Fault {
	f := Fault{File: file, Line: 1, Column: 1}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if fromParser.MatchString(text) {
			line++ // the library counts these from 0
		}
		f.Line = min(max(line, 1), bytes.Count(data, []byte("\n"))+1)
	}
	f.Message = "not YAML: " + text
	return f
}

// plainer copies a tree into its plain form and checks what holds for every node whatever its meaning.
type plainer struct {
	file   string
	faults []Fault
	nodes  int
	open   []*yaml.Node // aliases being expanded
}

func (p *plainer) fault(n *yaml.Node, path, format string, args ...any) {
	p.faults = append(p.faults, faultAt(p.file, n, path, format, args...))
}

// knownTags are the YAML types a spec may use.
var knownTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq"}

// plain returns a copy of n that shares nothing with it.
func (p *plainer) plain(n *yaml.Node, path string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return p.expand(n, path)
	}
	out := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value, Line: n.Line, Column: n.Column}
	if p.nodes++; p.nodes >= maxNodes {
		if p.nodes == maxNodes {
			p.fault(n, path, "the spec has more than %d values once its aliases are expanded", maxNodes)
		}
		return out
	}
	if !slices.Contains(knownTags, out.Tag) {
		p.fault(n, path, "the tag %s is not supported", n.Tag)
		out.Tag = map[yaml.Kind]string{yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq", yaml.ScalarNode: "!!null"}[n.Kind]
	}
	switch n.Kind {
	case yaml.MappingNode:
		p.mapping(n, out, path)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			out.Content = append(out.Content, p.plain(c, fmt.Sprintf("%s[%d]", path, i)))
		}
	case yaml.ScalarNode:
		p.scalar(out, path)
	}
	return out
}

func (p *plainer) scalar(n *yaml.Node, path string) {
	if n.Tag == "!!timestamp" {
		n.Tag = "!!str" // no field is a YAML timestamp, and quotes must make no difference
	}
	if n.Tag != "!!str" || !HasReference(n.Value) {
		return
	}
	if _, err := Resolve(n.Value); err != nil {
		p.reference(n, path, err)
	}
}

// reference reports each broken reference of a scalar.
func (p *plainer) reference(n *yaml.Node, path string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		p.fault(n, path, "%s", line)
	}
}

// expand copies what an alias stands for; a fault inside it is reported where it is written.
func (p *plainer) expand(n *yaml.Node, path string) *yaml.Node {
	if slices.Contains(p.open, n.Alias) {
		p.fault(n, path, "the anchor %s contains itself", n.Value)
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	}
	p.open = append(p.open, n.Alias)
	out := p.plain(n.Alias, path)
	p.open = p.open[:len(p.open)-1]
	return out
}

// mapping copies the members of n into out; those of merge keys come last and give way to the mapping's own.
func (p *plainer) mapping(n, out *yaml.Node, path string) {
	lines := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			p.fault(n.Content[i], path, "a key must be plain text, not %s", describe(key))
			continue
		}
		name := key.Value
		member := join(path, name)
		if HasReference(name) {
			p.fault(key, member, "references are not resolved in keys")
		}
		if first, repeated := lines[name]; repeated {
			p.fault(key, member, "duplicate key %q, first in line %d", name, first)
			p.plain(value, member)
			continue
		}
		lines[name] = key.Line
		plainKey := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: key.Line, Column: key.Column}
		out.Content = append(out.Content, plainKey, p.plain(value, member))
	}
	for _, m := range merged {
		p.merge(m, out, path, lines)
	}
}

// merge adds to out the members that a merge key brings: a mapping, or a list of mappings of which the first wins.
func (p *plainer) merge(value, out *yaml.Node, path string, lines map[string]int) {
	from := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		from = value.Content
	}
	for _, n := range from {
		source := p.plain(n, path)
		if source.Kind != yaml.MappingNode {
			p.fault(n, path, "a merge key << takes a mapping or a list of mappings, not %s", describe(source))
			continue
		}
		for i := 0; i+1 < len(source.Content); i += 2 {
			key := source.Content[i]
			if _, own := lines[key.Value]; own {
				continue
			}
			lines[key.Value] = key.Line
			out.Content = append(out.Content, key, source.Content[i+1])
		}
	}
}

// walk calls visit for n and everything below it. The tree must be plain.
func walk(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, c := range n.Content {
		walk(c, visit)
	}
}

// member returns key and value of a mapping's member, or nils.
func member(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// describe says in words what kind of value n is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int":
		return "an integer"
	case "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!null":
		return "nothing"
	}
	return "a string"
}
