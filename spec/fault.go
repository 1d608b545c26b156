package spec

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// String is FILE:LINE:COLUMN: message, with "warning: " before the message of a warning. Unknown positions are left out.
func (f Fault) String() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	if f.Warning {
		return where + ": warning: " + f.Message
	}
	return where + ": " + f.Message
}

// Error makes a fault an error.
func (f Fault) Error() string { return f.String() }

// Refused reports whether any of the faults is more than a warning.
func Refused(faults []Fault) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool { return !f.Warning })
}

// Sort orders faults by position and drops repetitions: an anchor used twice is one fault.
func Sort(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	out := faults[:0]
	for _, f := range faults {
		seen := func(o Fault) bool {
			return o.File == f.File && o.Line == f.Line && o.Column == f.Column && o.Message == f.Message
		}
		if !slices.ContainsFunc(out, seen) {
			out = append(out, f)
		}
	}
	return out
}

// faultAt is a fault at the position of n.
func faultAt(file string, n *yaml.Node, path, format string, args ...any) Fault {
	f := Fault{File: file, Path: path, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	return f
}

// didYouMean is `; did you mean "x"?` for the known name nearest to name, or "" if none is near.
func didYouMean(name string, known []string) string {
	best, bestDistance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(name, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// longestName bounds the work of distance on a hostile file.
const longestName = 64

// distance is the number of inserted, deleted and replaced bytes between a and b (Levenshtein).
func distance(a, b string) int {
	if len(a) > longestName || len(b) > longestName {
		return longestName
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
