// Package lint holds the rules on how this code is built that the compiler does not know: which package may import which, how long a
// file and a function may be, and what a test may not do. Its test applies them to the whole tree.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the import path of the repository's root.
const Module = "github.com/kafka-processor/processor"

// The limits of convention. About half of each is the aim.
const (
	MaxFileLines     = 800
	MaxFunctionLines = 70
)

// imports says which packages of this module each one may import, outside tests. The arrows point one way, from the program down to
// the messages; a name with /* stands for all packages below it.
var imports = map[string][]string{
	"processor/message":   nil,
	"spec":                {"processor/message"},
	"statestore":          {"processor/message", "spec"},
	"statestore/*":        {"statestore"},
	"sinks":               {"processor/message", "spec"},
	"sinks/*":             {"processor/message", "spec", "sinks"},
	"sources":             {"processor/message", "spec"},
	"sources/*":           {"processor/message", "spec", "sources"},
	"internal/kafka":      {"spec"},
	"internal/embedded":   nil,
	"internal/lint":       nil,
	"internal/*":          nil,
	"processor/epoch":     {"processor/message"},
	"processor/lease":     {"processor/message"},
	"processor/joblog":    {"processor/message", "processor/lease"},
	"processor/control":   {"processor/message", "processor/lease", "spec"},
	"processor/dedup":     {"processor/message", "statestore"},
	"processor/functions": {"processor/message", "spec"},
	"processor": {"processor/message", "processor/epoch", "processor/lease", "processor/joblog", "processor/control", "processor/dedup",
		"processor/functions", "spec", "statestore", "sinks", "sources", "internal/kafka"},
	// The program is the only place that names concrete stores, sources and sinks.
	"cmd/*":         {"processor", "processor/*", "spec", "statestore", "statestore/*", "sinks", "sinks/*", "sources", "sources/*", "internal/*", "web"},
	"web":           {"processor", "processor/*", "spec"},
	"integration":   {"processor/*", "spec", "internal/*", "statestore", "statestore/*"},
	"integration/*": {"integration", "processor/*", "spec", "internal/*", "statestore", "statestore/*"},
	"benchmarks/*":  {"integration", "processor/*", "spec", "internal/*"},
	"examples/*":    {"processor", "processor/*", "spec", "internal/embedded"},
}

// Violation is one broken rule.
type Violation struct {
	File    string
	Line    int
	Message string // what is wrong and what to do instead
}

func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Message) }

// Tree checks every Go file below root.
func Tree(root string) ([]Violation, error) {
	var out []Violation
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		found, err := File(filepath.ToSlash(rel), source)
		out = append(out, found...)
		return err
	})
	return out, err
}

// File checks one file; name is relative to the root, with slashes.
func File(name string, source []byte) ([]Violation, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, files: files, tree: tree}
	f.length()
	f.functions()
	if strings.HasSuffix(name, "_test.go") {
		f.sleeps()
	} else if !f.generatedOrAlone() {
		f.arrows()
	}
	return f.found, nil
}

type file struct {
	name  string
	files *token.FileSet
	tree  *ast.File
	found []Violation
}

func (f *file) report(at token.Pos, format string, args ...any) {
	f.found = append(f.found, Violation{f.name, f.files.Position(at).Line, fmt.Sprintf(format, args...)})
}

// generatedOrAlone tells of scripts that belong to no package.
func (f *file) generatedOrAlone() bool {
	for _, group := range f.tree.Comments {
		if group.Pos() < f.tree.Package && strings.Contains(group.List[0].Text, "go:build ignore") {
			return true
		}
	}
	return false
}

func (f *file) length() {
	if n := f.files.File(f.tree.FileStart).LineCount(); n > MaxFileLines {
		f.report(f.tree.Package, "the file has %d lines, more than %d: split it by the things it is about; a file is a noun", n, MaxFileLines)
	}
}

func (f *file) functions() {
	for _, d := range f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		n := f.lines(fn) - f.tables(fn)
		if n > MaxFunctionLines {
			f.report(fn.Pos(), "function %s has %d lines, more than %d: keep the branches in it and move the straight pieces into functions with names",
				fn.Name.Name, n, MaxFunctionLines)
		}
	}
}

func (f *file) lines(n ast.Node) int {
	return f.files.Position(n.End()).Line - f.files.Position(n.Pos()).Line + 1
}

// tables counts the lines inside a test's literals: a table of cases is data, however long.
func (f *file) tables(fn *ast.FuncDecl) int {
	if !strings.HasSuffix(f.name, "_test.go") {
		return 0
	}
	n := 0
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		if c, ok := node.(*ast.CompositeLit); ok {
			n += f.lines(c) - 1
			return false
		}
		return true
	})
	return n
}

// sleeps finds time.Sleep: a test that sleeps is slow where the machine is fast and wrong where it is slow.
func (f *file) sleeps() {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
				f.report(s.Pos(), "a test sleeps: wait for the event itself (a channel, a hook, a condition that is polled with a deadline)")
			}
		}
		return true
	})
}

// arrows checks the imports of packages of this module.
func (f *file) arrows() {
	from := path.Dir(f.name)
	allowed, known := allowedFor(from)
	if !known {
		f.report(f.tree.Package, "package %s has no place in the table of internal/lint: add it with the fewest imports that do", from)
		return
	}
	for _, i := range f.tree.Imports {
		to, err := strconv.Unquote(i.Path.Value)
		if err != nil || !strings.HasPrefix(to, Module+"/") {
			continue
		}
		to = strings.TrimPrefix(to, Module+"/")
		if to != from && !slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, to) }) {
			f.report(i.Pos(), "package %s must not import %s: declare an interface where it is used and let the caller (in the end cmd/processor) hand the thing in, "+
				"or move what both need further down", from, to)
		}
	}
}

// allowedFor looks for the package itself, then for the nearest pattern above it.
func allowedFor(pkg string) ([]string, bool) {
	if a, ok := imports[pkg]; ok {
		return a, true
	}
	for dir := path.Dir(pkg); dir != "."; dir = path.Dir(dir) {
		if a, ok := imports[dir+"/*"]; ok {
			return a, true
		}
	}
	return nil, false
}

func matches(pattern, pkg string) bool {
	if above, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(pkg, above+"/")
	}
	return pattern == pkg
}
