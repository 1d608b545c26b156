package spec

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// reference is an escaped or real reference, or the start of a broken one.
var reference = regexp.MustCompile(`\$\$\{(?:env|file):|\$\{(?:env|file):[^}]*\}?`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxReferenced bounds a referenced file, in bytes.
const maxReferenced = 1 << 20

// HasReference reports whether text holds a reference or an escaped one.
func HasReference(text string) bool { return reference.MatchString(text) }

// Resolve replaces the references of text by their values: ${env:NAME} by an environment variable, ${env:NAME:-default} by
// default if it is unset or empty, ${file:PATH} by a file's content without its last line break (a relative path counts from
// the working directory). $${env: and $${file: stand for themselves without the first $. Errors name the reference, never a
// value.
func Resolve(text string) (string, error) {
	var errs []error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		value, err := lookUp(ref)
		if err != nil {
			errs = append(errs, err)
		}
		return value
	})
	if len(errs) > 0 {
		return "", errors.Join(errs...)
	}
	return out, nil
}

func lookUp(ref string) (string, error) {
	if escaped, found := strings.CutPrefix(ref, "$$"); found {
		return "$" + escaped, nil
	}
	body, closed := strings.CutSuffix(strings.TrimPrefix(ref, "${"), "}")
	if !closed {
		return "", errors.New("a reference lacks its closing }")
	}
	kind, rest, _ := strings.Cut(body, ":")
	if kind == "file" {
		return lookUpFile(rest)
	}
	name, fallback, hasFallback := strings.Cut(rest, ":-")
	if !envName.MatchString(name) {
		return "", errors.New("a reference needs the name of an environment variable: ${env:NAME}")
	}
	value, set := os.LookupEnv(name)
	switch {
	case value == "" && hasFallback:
		return fallback, nil
	case !set:
		return "", fmt.Errorf("environment variable %s is not set; set it, or give a default as in ${env:%s:-default}", name, name)
	}
	return value, nil
}

func lookUpFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("referenced file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxReferenced+1))
	if err != nil {
		return "", fmt.Errorf("referenced file: %w", err)
	}
	if len(content) > maxReferenced {
		return "", fmt.Errorf("referenced file %s is larger than 1Mi", path)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
}

// NewSecret is a secret of this reference (or, less safely, of this literal).
func NewSecret(reference string) Secret { return Secret{&reference} }

func (s Secret) written() string {
	if s.reference == nil {
		return ""
	}
	return *s.reference
}

// Empty reports whether nothing was written.
func (s Secret) Empty() bool { return s.written() == "" }

// Literal reports whether the value stands in the spec itself.
func (s Secret) Literal() bool { return s.written() != "" && s.shown() == hidden }

// Reveal gives the value; it is looked up now, so that a changed file or variable counts. Errors name the reference only.
func (s Secret) Reveal() (string, error) { return Resolve(s.written()) }

const hidden = "***"

// shown is a lone reference without its default, which may be a value; anything else is hidden.
func (s Secret) shown() string {
	text := s.written()
	loc := reference.FindStringIndex(text)
	switch {
	case text == "":
		return ""
	case loc == nil || loc[0] != 0 || loc[1] != len(text) || strings.HasPrefix(text, "$$"):
		return hidden
	}
	if name, _, found := strings.Cut(text, ":-"); found && strings.HasPrefix(name, "${env:") {
		return name + ":-" + hidden + "}"
	}
	return text
}

// String is the reference; a literal is hidden.
func (s Secret) String() string { return s.shown() }

// GoString is String.
func (s Secret) GoString() string { return strconv.Quote(s.shown()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }
