package lease

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Stories are files of lines "event key=value ... -> action key=value ...". Text after # is for the reader. "new generation=1"
// begins anew.
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
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				given, want, _ := strings.Cut(line, "->")
				if g, ok := strings.CutPrefix(given, "new generation="); ok {
					generation, _ := strconv.ParseUint(strings.TrimSpace(g), 10, 64)
					m = New(0, generation)
					continue
				}
				e, err := parseEvent(given)
				if err != nil {
					t.Fatalf("%s:%d: %v", file, n, err)
				}
				if got := tell(m.Step(e)); got != strings.TrimSpace(want) {
					t.Errorf("%s:%d: %s\n got  %s\n want %s", file, n, strings.TrimSpace(given), got, strings.TrimSpace(want))
				}
			}
		})
	}
}

func parseEvent(s string) (e Event, err error) {
	var words []string
	for _, f := range strings.Fields(s) {
		key, value, ok := strings.Cut(f, "=")
		number, _ := strconv.ParseUint(value, 10, 64)
		switch {
		case !ok && f != "running":
			words = append(words, f)
		case f == "running":
			e.Running = true
		case key == "generation":
			e.Generation = number
		case key == "log":
			e.LogGeneration = number
		case key == "term":
			e.Term = number
		case key == "epoch":
			term, count, _ := strings.Cut(value, "/")
			e.EpochTerm, _ = strconv.ParseUint(term, 10, 64)
			e.EpochNumber, _ = strconv.ParseUint(count, 10, 64)
		case key == "reason":
			e.Reason = value
		case key == "verdict":
			for v, n := range verdictNames {
				if n == value {
					e.Verdict = Verdict(v)
				}
			}
		default:
			return e, fmt.Errorf("what is %q?", f)
		}
	}
	for k, n := range eventNames {
		if k > 0 && n == strings.Join(words, " ") {
			e.Kind = EventKind(k)
			return e, nil
		}
	}
	return e, fmt.Errorf("no event %q", words)
}

func tell(a Action) string {
	s := a.Kind.String()
	if a.Term != 0 {
		s += fmt.Sprintf(" term=%d", a.Term)
	}
	if a.EpochTerm != 0 {
		s += fmt.Sprintf(" epoch=%d/%d", a.EpochTerm, a.EpochNumber)
	}
	if a.Attempt != 0 {
		s += fmt.Sprintf(" attempt=%d", a.Attempt)
	}
	if a.Finish {
		s += " finish"
	}
	if a.Doubt != NoDoubt {
		s += ", " + a.Doubt.String()
	}
	if a.Reason != "" {
		s += ": " + a.Reason
	}
	return s
}
