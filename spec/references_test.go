package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// These tests set environment variables, so they cannot run in parallel.

func TestReferencesAreResolvedAnywhere(t *testing.T) {
	t.Setenv("SPEC_TEST_TOPIC", "orders-eu")
	t.Setenv("SPEC_TEST_JOBS", "7")
	t.Setenv("SPEC_TEST_EMPTY", "")
	s := mustParse(t, strings.NewReplacer(
		"topic: orders,", `topic: "${env:SPEC_TEST_TOPIC}",`,
		"jobs: 2", `jobs: ${env:SPEC_TEST_JOBS}`,
		"topic: text,", `topic: "x-${env:SPEC_TEST_EMPTY:-a}-${env:SPEC_TEST_NONE:-b}${env:SPEC_TEST_EMPTY}",`,
	).Replace(base))
	if got := s.Computations.Get("read").Sources.Get("in").Kafka.Topic; got != "orders-eu" {
		t.Errorf("source topic %q", got)
	}
	if s.Jobs != 7 {
		t.Errorf("jobs %d", s.Jobs)
	}
	if got := s.Computations.Get("format").Sinks.Get("text").Kafka.Topic; got != "x-a-b" {
		t.Errorf("sink topic %q", got)
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"unix": "one\ntwo\n", "dos": "one\r\n", "huge": strings.Repeat("x", maxReferenced+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SPEC_TEST_REF", "${env:HOME}")
	for text, want := range map[string]string{
		"plain ${x} $y {z}":               "plain ${x} $y {z}",
		"$${env:HOME} $${file:x}":         "${env:HOME} ${file:x}",
		"${file:" + dir + "/unix}":        "one\ntwo",
		"a${file:" + dir + "/dos}b":       "aoneb",
		"${env:SPEC_TEST_REF}":            "${env:HOME}", // a value is never read for references again
		"${env:SPEC_TEST_NONE:-}":         "",
		"${env:SPEC_TEST_NONE:-http://a}": "http://a",
	} {
		if got, err := Resolve(text); err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"${env:SPEC_TEST_NONE}":    "SPEC_TEST_NONE is not set",
		"${env:}":                  "name of an environment variable",
		"${env:A":                  "closing }",
		"${file:}":                 "referenced file",
		"${file:" + dir + "/huge}": "larger than 1Mi",
		"${file:" + dir + "/none}": "no such file",
	} {
		if got, err := Resolve(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q) = %q, %v; want an error with %q", text, got, err, want)
		}
	}
}

const planted = "pl4nted-v4lue"

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Setenv("SPEC_TEST_SECRET", planted)
	for _, written := range []string{"${env:SPEC_TEST_SECRET}", "${env:SPEC_TEST_NONE:-" + planted + "}", planted, "x${env:SPEC_TEST_SECRET}"} {
		s := mustParse(t, strings.Replace(base, "kafka: {", `kafka: {sasl: {mechanism: plain, username: "`+written+`", password: "`+written+`"}, `, 1))
		secret := s.Kafka.SASL.Password
		if value, err := secret.Reveal(); err != nil || strings.TrimPrefix(value, "x") != planted {
			t.Fatalf("%s reveals %q, %v", written, value, err)
		}
		var out strings.Builder
		for _, v := range []any{s, *s, s.Kafka, s.Kafka.SASL, *s.Kafka.SASL, secret, &secret, []Secret{secret}, map[string]Secret{"a": secret}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				fmt.Fprintf(&out, verb, v)
			}
			asJSON, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(asJSON)
		}
		asYAML, err := yaml.Marshal(s.Kafka)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(asYAML)
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).Info("a", "secret", secret, "kafka", s.Kafka, "sasl", s.Kafka.SASL)
		}
		out.Write(s.Normalised())
		for _, f := range Validate(s) {
			out.WriteString(f.String())
		}
		if hex := fmt.Sprintf("%x", planted); strings.Contains(out.String(), planted) || strings.Contains(out.String(), hex) {
			t.Errorf("%s: the value is printed", written)
		}
	}
}

func TestSecretShowsItsReferenceOnly(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"":                  "",
		"literal":           "***",
		"${env:A}":          "${env:A}",
		"${env:A:-default}": "${env:A:-***}",
		"${file:/run/a:-b}": "${file:/run/a:-b}",
		"$${env:A}":         "***",
		"${env:A}${env:B}":  "***",
	} {
		if got := NewSecret(written).String(); got != want {
			t.Errorf("secret %q is shown as %q, want %q", written, got, want)
		}
	}
}

func TestFaultsNeverHoldResolvedValues(t *testing.T) {
	t.Setenv("SPEC_TEST_SECRET", planted)
	t.Setenv("SPEC_TEST_ODD", "Q\"\n"+planted)
	ref := `"${env:SPEC_TEST_SECRET}"`
	for _, change := range []string{
		"pipeline: shop", "jobs: 2", "partitions: 4", "type: swift_map", "type: int64", "[keyed]\n  format", "[lines]\n", "format: json", "topic: sums", "[id]}}",
		"name: id, type: string, required: true", "output_stream_id: orders", "function: aggregate", "[\"127.0.0.1:9092\"]", "type: kafka",
	} {
		field, rest, found := strings.Cut(change, ": ")
		changed := field + ": " + ref
		if !found {
			changed = "[" + ref + "]" + strings.TrimLeft(strings.TrimPrefix(change, change[:strings.Index(change, "]")+1]), " ")
		} else if _, after, more := strings.Cut(rest, ","); more {
			changed += "," + after
		}
		for _, c := range []string{changed, strings.ReplaceAll(changed, "_SECRET", "_ODD")} {
			got := allFaults(strings.Replace(base, change, c, 1))
			if strings.Contains(got, planted) {
				t.Errorf("%s: a value is printed:\n%s", c, got)
			}
		}
	}
}

func TestFaultsOfParsingNameReferencesToo(t *testing.T) {
	t.Setenv("SPEC_TEST_POLICY", "skip")
	got := allFaults(strings.Replace(base, "type: swift_map", "type: swift_map\n    on_error: {policy: \"${env:SPEC_TEST_POLICY}\", dead_letter: lines}", 1))
	if !strings.Contains(got, "on_error has dead_letter and policy ${env:SPEC_TEST_POLICY}; keep one of them") {
		t.Errorf("faults:\n%s", got)
	}
}

func TestRedactPutsReferencesBackOnce(t *testing.T) {
	t.Setenv("SPEC_TEST_SECRET", planted)
	t.Setenv("SPEC_TEST_SHORT", "4")
	s := mustParse(t, base+"dynamic: {computations: {sum: {sinks: {out: {parameters: {a: \"u:${env:SPEC_TEST_SECRET}\", b: \"${env:SPEC_TEST_SHORT}\"}}}}}}\n")
	in := []Fault{{Message: "bad u:" + planted + " and " + planted + "x, 4 of 64", Path: "a." + planted}}
	once := s.Redact(in)
	if want := "bad u:${env:SPEC_TEST_SECRET} and ${env:SPEC_TEST_SECRET}x, ${env:SPEC_TEST_SHORT} of 64"; once[0].Message != want || once[0].Path != "a.${env:SPEC_TEST_SECRET}" {
		t.Errorf("redacted %+v, want %q", once[0], want)
	}
	if twice := s.Redact(once); twice[0] != once[0] {
		t.Errorf("redacted again %q", twice[0].Message)
	}
	if bytes.Contains([]byte(in[0].Message), []byte("${")) {
		t.Error("the given faults are changed")
	}
}
