package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodSpec = `pipeline: one
streams: {a: {schema: [{name: x, type: string}]}, b: {schema: [{name: x, type: string}]}}
computations:
  c:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: a, parameters: {topic: t}}}
    process: {function: map, parameters: {outputs: [{stream: b, columns: {x: row.x}}]}}
    output_stream_ids: [b]
    sinks: {out: {type: kafka, input_stream_ids: [b], parameters: {topic: u}}}
`

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good := write(t, goodSpec)
	bad := write(t, strings.Replace(goodSpec, "process:", "proces:", 1))
	warned := write(t, strings.Replace(goodSpec, "parameters: {topic: t}", "parameters: {topic: t}, watermark: {timestamp: kafka}", 1))
	for _, c := range []struct {
		name string
		args []string
		code int
		want string // in the output
	}{
		{"no command", nil, exitUsage, "a command is missing"},
		{"unknown command", []string{"validat"}, exitUsage, `unknown command "validat"`},
		{"unknown flag", []string{"validate", "-f", good, "--loud"}, exitUsage, "unknown flag: --loud"},
		{"missing flag", []string{"validate"}, exitUsage, `required flag(s) "file" not set`},
		{"superfluous argument", []string{"validate", "-f", good, "more"}, exitUsage, "more"},
		{"unknown log level", []string{"schema", "--log-level", "loud"}, exitUsage, "log-level"},
		{"help", []string{"--help"}, exitDone, "validate"},
		{"good spec", []string{"validate", "-f", good}, exitDone, good + ": ok, 1 computation\n"},
		{"warnings do not fail", []string{"validate", "-f", warned}, exitDone, "6:78: warning: event time"},
		{"bad spec", []string{"validate", "-f", bad}, exitError, bad + `:7:5: unknown field "proces"; did you mean "process"?` + "\n"},
		{"no such spec", []string{"validate", "-f", good + ".not"}, exitError, "cannot read the spec"},
		{"schema", []string{"schema"}, exitDone, `"$schema"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(c.args, &stdout, &stderr)
			if out := stdout.String() + stderr.String(); code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("run(%q) = %d, want %d and %q in:\n%s", c.args, code, c.code, c.want, out)
			}
		})
	}
}

func TestLogsAreJSONAwayFromATerminalAndKeepTheLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(newLogHandler(io.Writer(&out), slog.LevelWarn))
	log.Info("quiet")
	log.Warn("loud")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "loud" {
		t.Errorf("log output %q: %v", out.String(), err)
	}
}
