package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// maxLogLines bounds what a Log keeps; the older half is let go when it is full.
const maxLogLines = 100_000

// Line is one line of a log. Message and Fields are there when it is a JSON object, as slog's JSON handler writes it.
type Line struct {
	Text    string
	Message string
	Fields  map[string]any
}

// Has tells whether the message contains the phrase, or the whole line does when it is no JSON.
func (l Line) Has(phrase string) bool {
	if l.Fields == nil {
		return strings.Contains(l.Text, phrase)
	}
	return strings.Contains(l.Message, phrase)
}

// Number is a numeric field, or -1.
func (l Line) Number(field string) float64 {
	if n, ok := l.Fields[field].(float64); ok {
		return n
	}
	return -1
}

// Field is a field as text, or "".
func (l Line) Field(field string) string {
	if v, ok := l.Fields[field]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

// Log collects the lines of a process, and of the ones that follow it under the same name, and can be waited on.
type Log struct {
	copy io.Writer // may be nil

	mu      sync.Mutex
	first   int // number of lines[0], counted from the beginning
	lines   []Line
	partial []byte
	changed chan struct{} // closed and replaced at every new line
}

// NewLog gives an empty log that also writes everything to copy, when that is not nil.
func NewLog(copy io.Writer) *Log {
	return &Log{copy: copy, changed: make(chan struct{})}
}

// Write takes output of the process.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copy != nil {
		if _, err := l.copy.Write(p); err != nil {
			return 0, fmt.Errorf("copy of the log: %w", err)
		}
	}
	l.partial = append(l.partial, p...)
	for {
		i := bytes.IndexByte(l.partial, '\n')
		if i < 0 {
			return len(p), nil
		}
		l.add(string(l.partial[:i]))
		l.partial = l.partial[i+1:]
	}
}

func (l *Log) add(text string) {
	line := Line{Text: text}
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &line.Fields) == nil {
		line.Message, _ = line.Fields["msg"].(string)
	}
	if len(l.lines) == maxLogLines {
		l.lines = append([]Line(nil), l.lines[maxLogLines/2:]...)
		l.first += maxLogLines / 2
	}
	l.lines = append(l.lines, line)
	close(l.changed)
	l.changed = make(chan struct{})
}

// cut ends a line that a killed process left unfinished.
func (l *Log) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.add(string(l.partial))
		l.partial = nil
	}
}

// Mark is the number of lines so far: a place to wait or search from.
func (l *Log) Mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + len(l.lines)
}

// Since returns the lines from a mark on.
func (l *Log) Since(mark int) []Line {
	lines, _ := l.since(mark)
	return lines
}

func (l *Log) since(mark int) ([]Line, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := min(max(mark-l.first, 0), len(l.lines))
	return append([]Line(nil), l.lines[from:]...), l.changed
}

// Find returns the lines from a mark on that match.
func (l *Log) Find(mark int, match func(Line) bool) []Line {
	var found []Line
	for _, line := range l.Since(mark) {
		if match(line) {
			found = append(found, line)
		}
	}
	return found
}

// Await returns the first line from a mark on that matches, as soon as it is there. The error at the context's end shows
// the log's last lines.
func (l *Log) Await(ctx context.Context, mark int, match func(Line) bool) (Line, error) {
	for {
		lines, changed := l.since(mark)
		for _, line := range lines {
			if match(line) {
				return line, nil
			}
		}
		mark += len(lines)
		select {
		case <-changed:
		case <-ctx.Done():
			return Line{}, fmt.Errorf("no such line in the log: %w; its last lines:\n%s", context.Cause(ctx), l.Tail(20))
		}
	}
}

// Tail is the text of the last n lines.
func (l *Log) Tail(n int) string {
	lines := l.Since(l.Mark() - n)
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	return strings.Join(texts, "\n")
}
