package functions

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kafka-processor/processor/processor/message"
	"github.com/kafka-processor/processor/spec"
)

// columns makes a schema of "name kind" pairs; a ! after the kind makes the column required.
func columns(t testing.TB, text string) *message.Schema {
	t.Helper()
	var all []message.Column
	for column := range strings.SplitSeq(text, ",") {
		name, word, _ := strings.Cut(strings.TrimSpace(column), " ")
		kind, ok := message.ParseKind(strings.TrimSuffix(word, "!"))
		if !ok {
			t.Fatalf("column %q has no kind", column)
		}
		all = append(all, message.Column{Name: name, Kind: kind, Required: strings.HasSuffix(word, "!")})
	}
	return message.MustSchema(all...)
}

// config is a Config whose process is YAML text.
func config(t testing.TB, text string) Config {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	c := Config{File: "p.yaml", Node: document.Content[0]}
	for i := 0; i+1 < len(c.Node.Content); i += 2 {
		switch c.Node.Content[i].Value {
		case "function":
			c.Function = c.Node.Content[i+1].Value
		case "parameters":
			c.Parameters = c.Node.Content[i+1]
		}
	}
	return c
}

func mustBuild(t testing.TB, c Config) Function {
	t.Helper()
	f, faults := Build(c)
	if spec.Refused(faults) {
		t.Fatalf("refused: %v", faults)
	}
	return f
}

// shownFaults are the faults as text, one a line.
func shownFaults(faults []Fault) string {
	var lines []string
	for _, f := range faults {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// emitted keeps what a function emits, as text, since rows do not outlive Emit.
type emitted struct {
	rows    []string
	refused error
}

func (e *emitted) Emit(stream int, row message.Row) error {
	if e.refused != nil {
		return e.refused
	}
	cells := make([]string, len(row))
	for i, v := range row {
		switch v.Kind {
		case message.Null:
			cells[i] = "null"
		case message.String:
			cells[i] = fmt.Sprintf("%q", v.Str)
		case message.JSON:
			cells[i] = strings.Clone(v.Str)
		default:
			cells[i] = fmt.Sprint(toCEL(v).Value())
		}
	}
	e.rows = append(e.rows, fmt.Sprintf("%d: %s", stream, strings.Join(cells, " ")))
	return nil
}

func (e *emitted) take() string {
	text := strings.Join(e.rows, "\n")
	e.rows = nil
	return text
}

// oneKey is the states of one key.
type oneKey struct {
	codec    Codec
	object   any
	modified int
	refused  error
}

func (s *oneKey) Get(int) (any, error) { return s.object, nil }

func (s *oneKey) Modify(int) (any, error) {
	s.modified++
	if s.refused != nil {
		return nil, s.refused
	}
	if s.object == nil {
		s.object = s.codec.New()
	}
	return s.object, nil
}

func (s *oneKey) Delete(int) { s.object = nil }

// encoded is the state's bytes.
func (s *oneKey) encoded(t testing.TB) string {
	t.Helper()
	if s.object == nil {
		return ""
	}
	b, err := s.codec.Append(nil, s.object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var errTooLarge = errors.New("record too large")
