package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTreeKeepsTheRules(t *testing.T) {
	t.Parallel()
	found, err := Tree("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestRulesCatchWhatTheyForbid(t *testing.T) {
	t.Parallel()
	long := "package p\nfunc f() {\n" + strings.Repeat("_ = 0\n", MaxFunctionLines) + "}\n"
	for _, c := range []struct{ what, file, source, want string }{
		{"upward import", "spec/a.go", `package spec; import _ "` + Module + `/processor"`, "spec must not import processor"},
		{"concrete store in the runtime", "processor/a.go", `package processor; import _ "` + Module + `/statestore/pebble"`, "processor must not import statestore/pebble"},
		{"program in a library", "sinks/http/a.go", `package http; import _ "` + Module + `/cmd/processor"`, "sinks/http must not import cmd/processor"},
		{"client in a pure machine", "processor/epoch/a.go", `package epoch; import _ "` + Module + `/internal/kafka"`, "processor/epoch must not import internal/kafka"},
		{"unknown package", "util/a.go", "package util", "has no place in the table"},
		{"long function", "spec/a.go", long, "function f has 72 lines"},
		{"long file", "spec/a.go", "package spec\n" + strings.Repeat("\n", MaxFileLines), "the file has 801 lines"},
		{"sleeping test", "spec/a_test.go", `package spec; import "time"; func f() { time.Sleep(1) }`, "a test sleeps"},
	} {
		found, err := File(c.file, []byte(strings.Replace(c.source, "package p\n", "package spec\n", 1)))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].Message, c.want) {
			t.Errorf("%s: found %v, want %q", c.what, found, c.want)
		}
	}
}

func TestRulesLeaveGoodCodeAlone(t *testing.T) {
	t.Parallel()
	for file, source := range map[string]string{
		"cmd/processor/run.go":   `package main; import _ "` + Module + `/statestore/pebble"`,
		"processor/job.go":       `package processor; import _ "` + Module + `/processor/epoch"`,
		"spec/a.go":              `package spec; import "time"; func f() { time.Sleep(1) }`,
		"processor/a_test.go":    `package processor; import _ "` + Module + `/internal/embedded"`,
		"statestore/pebble/a.go": `package pebble; import _ "` + Module + `/statestore"`,
	} {
		found, err := File(file, []byte(source))
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", file, found, err)
		}
	}
}

func TestInvariantsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../INVARIANTS.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Fatalf("INVARIANTS.md names %d tests", len(named))
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("../..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				tests[strings.TrimSuffix(f.Name.Name, "_test")+"."+fn.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range named {
		if !tests[n[1]+"."+n[2]] {
			t.Errorf("INVARIANTS.md names %s.%s, which is no test: name the test that holds the invariant now", n[1], n[2])
		}
	}
}
