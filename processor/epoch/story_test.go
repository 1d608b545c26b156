package epoch

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Stories are files of lines "event key=value ... -> answer and what the machine shows". Text after # is for the reader; "new ..."
// begins anew with a Config.
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var m Machine
			scan := bufio.NewScanner(f)
			for n := 1; scan.Scan(); n++ {
				line, _, _ := strings.Cut(scan.Text(), "#")
				given, want, told := strings.Cut(line, "->")
				words := strings.Fields(given)
				if len(words) == 0 {
					continue
				}
				if words[0] == "new" {
					m = Machine{Config: parseConfig(t, words[1:])}
					continue
				}
				e, in := parseEvent(t, words)
				if got, want := show(&m, m.Step(e, in)), strings.TrimSpace(want); !told || got != want {
					t.Errorf("%s:%d: %s\n got  %s\n want %s", file, n, strings.TrimSpace(given), got, want)
				}
			}
		})
	}
}

func parseConfig(t *testing.T, words []string) (c Config) {
	for _, w := range words {
		key, value := number(t, w)
		switch key {
		case "max_interval":
			c.MaxInterval = time.Duration(value)
		case "settle":
			c.Settle = time.Duration(value)
		case "max_records":
			c.MaxRecords = int(value)
		case "max_bytes":
			c.MaxBytes = value
		default:
			t.Fatalf("what is %q?", w)
		}
	}
	return c
}

func parseEvent(t *testing.T, words []string) (e Event, in Input) {
	kinds := map[string]Event{"worked": Worked, "looked": Looked, "committed": Committed, "ended": Ended}
	e, ok := kinds[words[0]]
	if !ok {
		t.Fatalf("what is %q?", words[0])
	}
	in.Slot = 1 // granted, unless the story says otherwise
	for _, w := range words[1:] {
		switch w {
		case "silent":
			in.Silent = true
			continue
		case "drained":
			in.Drained = true
			continue
		}
		switch key, value := number(t, w); key {
		case "now":
			in.Now = value
		case "records":
			in.Records = int(value)
		case "bytes":
			in.Bytes = value
		case "slot":
			in.Slot = value
		default:
			t.Fatalf("what is %q?", w)
		}
	}
	return e, in
}

func number(t *testing.T, w string) (string, int64) {
	key, text, _ := strings.Cut(w, "=")
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("what is %q?", w)
	}
	return key, value
}

func show(m *Machine, a Action) string {
	out := "nothing"
	if a.Close {
		out = "close"
	}
	if a.Ask {
		out = "ask"
	}
	if a.Wake != 0 {
		out = fmt.Sprintf("wake=%d", a.Wake)
	}
	out += fmt.Sprintf(" open=%d", m.Open())
	if m.Full() {
		out += " full"
	}
	if m.Sending() {
		out += " sending"
	}
	return out
}
