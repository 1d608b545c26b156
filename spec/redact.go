package spec

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Redact puts references back into messages and paths that show their values, such as a compiler's complaint about an
// expression. Faults that do not come from this package go through it before anybody sees them. Redacting twice does no harm.
func (s *Spec) Redact(faults []Fault) []Fault {
	values := resolvedValues(&s.Document)
	if len(values) == 0 {
		return faults
	}
	out := slices.Clone(faults)
	for i := range out {
		out[i].Message = hide(out[i].Message, values)
		out[i].Path = hide(out[i].Path, values)
	}
	return out
}

// resolved is a value with what stands for it in the file.
type resolved struct{ value, written string }

// resolvedValues lists what the references below n stand for, as whole scalars and as single references, and the references
// themselves, which stand for themselves: those first, then the longest first.
func resolvedValues(n *yaml.Node) []resolved {
	var values, references []resolved
	walk(n, func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || !HasReference(n.Value) {
			return
		}
		for _, written := range append(reference.FindAllString(n.Value, -1), n.Value) {
			references = append(references, resolved{written, written})
			value, err := Resolve(written)
			if err != nil || value == "" {
				continue
			}
			values = append(values, resolved{value, written})
			if quoted := strings.Trim(strconv.Quote(value), `"`); quoted != value {
				values = append(values, resolved{quoted, written})
			}
		}
	})
	longest := func(a, b resolved) int { return cmp.Compare(len(b.value), len(a.value)) }
	slices.SortStableFunc(references, longest)
	slices.SortStableFunc(values, longest)
	return append(references, values...)
}

// hide replaces values in one pass, so that nothing is replaced inside a reference.
func hide(text string, values []resolved) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		found := slices.IndexFunc(values, func(v resolved) bool { return v.at(text, i) })
		if found >= 0 {
			out.WriteString(values[found].written)
			i += len(values[found].value)
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// shortValue is the length below which a value counts only as a whole word: "4" is no reason to spoil "64".
const shortValue = 4

func (v resolved) at(text string, i int) bool {
	if !strings.HasPrefix(text[i:], v.value) {
		return false
	}
	if len(v.value) >= shortValue {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+len(v.value):])
	return !inWord(before) && !inWord(after)
}

func inWord(r rune) bool { return unicode.IsLetter(r) && r != utf8.RuneError || unicode.IsDigit(r) }

// RedactText is Redact for any text that is shown or logged, such as a plan.
func (s *Spec) RedactText(text string) string {
	return s.Redact([]Fault{{Message: text}})[0].Message
}
