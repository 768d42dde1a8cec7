// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/gleam-rdma/gleam/"

// importable has, by their names, the packages that fragments import without saying so.
var importable = func() map[string]string {
	byName := map[string]string{}
	for _, p := range []string{
		"context", "errors", "fmt", "io", "log", "net", "net/netip", "os", "time",
		module + "api", module + "host/endpoint", module + "host/endpoint/oob", module + "host/endpoint/soft", module + "host/endpoint/verbs",
		module + "test/mutation/mutant",
	} {
		byName[path.Base(p)] = p
	}
	return byName
}()

// snippet is a block of the language go, parsed as a file that has it.
type snippet struct {
	at      string // document and line
	in      string // the package whose names it uses, or none
	program bool   // a whole file, in which a variable that nothing uses is a fault
	file    *ast.File
}

// TestGoCodeCompiles checks the types of all blocks of the language go: each is a whole file, or has a comment before
// it that says what is around it (go doc ./test/docs).
func TestGoCodeCompiles(t *testing.T) {
	fset := token.NewFileSet()
	var all []snippet
	read := func(name, text string) {
		bs, _ := blocks(text) // TestEveryCommandIsTyped has its errors
		for _, b := range bs {
			if b.language != "go" {
				continue
			}
			s, err := parseGo(fset, fmt.Sprintf("%s:%d", name, b.line), b)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			all = append(all, s)
		}
	}
	for name, text := range documents(t) {
		read(name, text)
	}
	documented := len(all)
	faults := []struct{ text, want string }{
		{"<!-- Go, as: func() {…} -->\n```go\n_ = endpoint.Nothing\n```", "undefined: endpoint.Nothing"},
		{"<!-- Go, as: func() {…} -->\n```go\nvar m endpoint.MasterConfig\nm.Nothing = 1\n```", "m.Nothing undefined"},
		{"<!-- Go, as: func() {…} -->\n```go\nvar m mcast.Switch\n```", "undefined: mcast"},
		{"<!-- Go in mcast -->\n```go\nfunc (*Switch) Nothing()\n```", "missing method Nothing"},
		{"<!-- Go in mcast -->\n```go\nfunc (*Switch) Advance(now time.Duration)\n```", "wrong type for method Advance"},
		{"```go\npackage main\nfunc main() { x := 1 }\n```", "declared and not used: x"},
		{"```go\npackage main\nimport _ \"" + module + "mcast\"\n```", "promises nothing to other modules"},
	}
	for _, f := range faults {
		read("a test's", f.text)
	}
	errs := checkGo(t, fset, all)
	for i, s := range all {
		switch {
		case i < documented && errs[i] != nil:
			t.Errorf("%s: %v", s.at, errs[i])
		case i >= documented && (errs[i] == nil || !strings.Contains(errs[i].Error(), faults[i-documented].want)):
			t.Errorf("%s: %v, want %s", faults[i-documented].text, errs[i], faults[i-documented].want)
		}
	}
	if documented < 5 {
		t.Errorf("%d blocks in all: are they read rightly?", documented)
	}
}

// parseGo parses a block, with what its comment says is around it and the imports that it needs.
func parseGo(fset *token.FileSet, at string, b block) (s snippet, err error) {
	s = snippet{at: at, in: b.in}
	if wholeFile.MatchString(b.text) && b.kind == unmarked {
		s.program = true
		s.file, err = parser.ParseFile(fset, at, b.text, 0)
		return s, err
	}
	if b.kind != goCode {
		return s, fmt.Errorf("%s: it is no whole file, and has no comment that says what is around it: go doc ./test/docs", at)
	}
	text := "\n" + b.text
	if b.as != "" {
		before, after, _ := strings.Cut(b.as, "…")
		text = "var _ = " + before + text + after
	}
	f, err := parser.ParseFile(fset, at, "package p;"+text, 0)
	if err != nil {
		return s, err
	}
	text = exists(fset, f, "package p;"+text)[len("package p;"):]
	imports := map[string]bool{}
	for _, i := range f.Unresolved {
		if p := importable[i.Name]; p != "" {
			imports[fmt.Sprintf("import %q;", p)] = true
		}
	}
	name := cmp.Or(path.Base(b.in), "p")
	if name == "." {
		name = "p"
	}
	s.file, err = parser.ParseFile(fset, at, "package "+name+";"+strings.Join(slices.Sorted(maps.Keys(imports)), "")+text, 0)
	return s, err
}

// exists replaces the declarations of functions without a body by values that have their types, if there are such
// functions.
func exists(fset *token.FileSet, f *ast.File, text string) string {
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	for _, d := range slices.Backward(f.Decls) {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body != nil {
			continue
		}
		of := func(n ast.Node) string { return text[offset(n.Pos()):offset(n.End())] }
		value := "var _ func" + text[offset(fn.Type.Params.Pos()):offset(fn.End())] + " = " + fn.Name.Name
		if fn.Recv != nil {
			value = "var _ interface{ " + text[offset(fn.Name.Pos()):offset(fn.End())] + " } = *new(" + of(fn.Recv.List[0].Type) + ")"
		}
		text = text[:offset(fn.Pos())] + value + text[offset(fn.End()):]
	}
	return text
}

// importing are the packages that a file may import, by path.
type importing map[string]*types.Package

// Import returns one of them.
func (p importing) Import(path string) (*types.Package, error) {
	if q := p[path]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// checkGo returns the first error of each snippet. All packages that they import are loaded at once.
func checkGo(t *testing.T, fset *token.FileSet, all []snippet) []error {
	patterns := slices.Collect(maps.Values(importable))
	for _, s := range all {
		if s.in != "" {
			patterns = append(patterns, module+s.in)
		}
		for _, i := range s.file.Imports {
			patterns = append(patterns, strings.Trim(i.Path.Value, `"`))
		}
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadSyntax, Dir: root, Fset: fset, Env: append(os.Environ(), "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	byPath, known := map[string]*packages.Package{}, importing{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, e)
		}
		byPath[p.PkgPath], known[p.PkgPath] = p, p.Types
	}
	errs := make([]error, len(all))
	for i, s := range all {
		for _, used := range s.file.Imports {
			if p := strings.Trim(used.Path.Value, `"`); s.program && strings.HasPrefix(p, module) && importable[path.Base(p)] != p {
				errs[i] = fmt.Errorf("it imports %s, which promises nothing to other modules", p)
			}
		}
		files, path, imports := []*ast.File{s.file}, "p", known
		if p := byPath[module+s.in]; s.in != "" && p != nil {
			files, path, imports = append(files, p.Syntax...), p.PkgPath, maps.Clone(known)
			for name, q := range p.Imports {
				imports[name] = q.Types
			}
		}
		config := types.Config{Importer: imports, Error: func(err error) {
			if e, ok := err.(types.Error); (!ok || !e.Soft || s.program) && errs[i] == nil {
				errs[i] = err
			}
		}}
		_, _ = config.Check(path, fset, files, nil) // its error is the first that Error has heard
	}
	return errs
}

// A block's folder is a package of this module.
func TestGoCodeIsOfPackages(t *testing.T) {
	for name, text := range documents(t) {
		bs, _ := blocks(text)
		for _, b := range bs {
			if b.in == "" {
				continue
			}
			if files, _ := filepath.Glob(filepath.Join(root, b.in, "*.go")); len(files) == 0 {
				t.Errorf("%s:%d: there is no package %s", name, b.line, b.in)
			}
		}
	}
}
