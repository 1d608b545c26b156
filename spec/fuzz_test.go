package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse holds that no file makes the parser or the checks panic, that every fault lies inside the file, and that the
// normalised form of a good spec is stable.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{base, "a: &a [*a]", "<<: [{a: 1}, *x]", "? [a]\n: b", "--- a\n--- b", "a: !!binary x\nb: ! c", "pipeline: \"${env:A\"\njobs: 1_0", "\xef\xbb\xbfa: b", "a:\n\t- b"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("${file:")) {
			return // a fuzzer must not read whatever file it hits upon
		}
		s, faults := Parse("f", data)
		faults = append(faults, Validate(s)...)
		// The library counts CR, NEL, LS and PS as line breaks too.
		lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + strings.Count(string(data), "\u0085") +
			strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029")
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > lines || fault.Column < 1 || fault.Column > len(data)+1 {
				t.Fatalf("fault outside the file: %s", fault)
			}
			if fault.Message == "" {
				t.Fatal("fault without a message")
			}
		}
		if s == nil || len(faults) > 0 {
			return
		}
		first := s.Normalised()
		again, faults := Parse("f", first)
		if faults != nil || !bytes.Equal(first, again.Normalised()) {
			t.Fatalf("normalised form is not stable: %v\n%s", faults, first)
		}
	})
}
