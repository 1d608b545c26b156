package functions

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
)

// Names lists the built-in functions.
func Names() []string { return []string{"aggregate", "map"} }

// Build makes the function that cfg names. It checks everything that can be known before the first message and returns all
// faults; the function is nil unless they are all warnings.
func Build(cfg Config) (Function, []Fault) {
	b := &builder{cfg: cfg}
	if b.cfg.Path == "" {
		b.cfg.Path = "process"
	}
	var f Function
	switch cfg.Function {
	case "map":
		f = buildMap(b)
	case "aggregate":
		f = buildAggregate(b)
	default:
		b.fault(functionNode(cfg.Node), b.cfg.Path+".function", "unknown function %q%s; known are %s", cfg.Function,
			nearest(cfg.Function, Names()), strings.Join(Names(), ", "))
	}
	faults := spec.Sort(b.faults)
	if spec.Refused(faults) {
		return nil, faults
	}
	return f, faults
}

// functionNode is the node of the function's name within that of process.
func functionNode(process *yaml.Node) *yaml.Node {
	if process != nil && process.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(process.Content); i += 2 {
			if process.Content[i].Value == "function" {
				return process.Content[i+1]
			}
		}
	}
	return process
}

// builder collects the faults of one function.
type builder struct {
	cfg          Config
	environments []*environment // one for each input
	faults       []Fault
}

// decode reads the parameters into a struct.
func (b *builder) decode(into any) {
	b.faults = append(b.faults, spec.Decode(b.cfg.File, b.parameter(""), b.cfg.Parameters, into)...)
}

// parameter is the path of a parameter.
func (b *builder) parameter(name string) string {
	if name == "" {
		return b.cfg.Path + ".parameters"
	}
	return b.cfg.Path + ".parameters." + name
}

// fault records a fault at n, or at the parameters or process if n is nowhere in the file.
func (b *builder) fault(n *yaml.Node, path, format string, args ...any) {
	b.report(n, path, fmt.Sprintf(format, args...), false)
}

func (b *builder) report(n *yaml.Node, path, text string, warning bool) {
	f := Fault{File: b.cfg.File, Path: path, Message: text, Warning: warning}
	for _, at := range []*yaml.Node{n, b.cfg.Parameters, b.cfg.Node} {
		if at != nil && at.Line > 0 {
			f.Line, f.Column = at.Line, at.Column
			break
		}
	}
	b.faults = append(b.faults, f)
}

// scopes prepares one environment for each input.
func (b *builder) scopes() bool {
	for _, in := range b.cfg.Inputs {
		env, err := newEnvironment(Scope{Stream: in.Name, Row: in.Schema, Key: b.cfg.GroupBy})
		if err != nil {
			b.fault(nil, b.cfg.Path, "%v", err)
			return false
		}
		b.environments = append(b.environments, env)
	}
	return true
}

// text is the text of an expression: that of any scalar, so that 5 and true need no quotes. what is what it is for.
func (b *builder) text(n *yaml.Node, path, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		b.fault(n, path, "%s is a %s; write a CEL expression", what, nodeKind(n))
		return "", false
	}
	return n.Value, true
}

func nodeKind(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "list"
	}
	return "mapping"
}

// expression compiles the expression of n and reports its problems; it is nil if it cannot be used.
func (b *builder) expression(env *environment, n *yaml.Node, path string, target message.Column, known facts) *Expression {
	text, ok := b.text(n, path, target.Name)
	if !ok {
		return nil
	}
	x, problems := env.compile(text, target, known)
	b.problems(n, path, text, problems)
	return x
}

func (b *builder) problems(n *yaml.Node, path, text string, problems []Problem) {
	for _, p := range problems {
		b.report(n, path, fmt.Sprintf("expression %q: %s", text, p.Message), p.Warning)
	}
}

// output finds an output stream by its name.
func (b *builder) output(n *yaml.Node, path, name string) (index int, ok bool) {
	names := make([]string, len(b.cfg.Outputs))
	for i, s := range b.cfg.Outputs {
		if s.Name == name {
			return i, true
		}
		names[i] = s.Name
	}
	b.fault(n, path, "stream %q is not one of output_stream_ids (%s)%s", name, strings.Join(names, ", "), nearest(name, names))
	return 0, false
}

func columnNames(s *message.Schema) []string {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	return names
}

// nearest is `; did you mean "x"?` for the known name that is most like name, or "" if none is.
func nearest(name string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := edits(name, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// edits is the number of bytes to insert, delete, replace or swap with their neighbour that turn a into b.
func edits(a, b string) int {
	const longest = 100 // bounds the work; longer names have no near ones
	if len(a) > longest || len(b) > longest {
		return longest
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
