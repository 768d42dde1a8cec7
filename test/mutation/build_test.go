// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/packages"
)

// typed is a package whose mutants are type-checked.
type typed struct {
	*packages.Package
	bare map[string]*ast.File // files, with declarations alone, by path in the module
}

func loadTyped(t *testing.T, root string, ms []mutant) map[string]*typed {
	t.Helper()
	dirs := map[string]bool{}
	var patterns []string
	for _, m := range ms {
		if !dirs[m.dir] {
			dirs[m.dir] = true
			patterns = append(patterns, "./"+m.dir)
		}
	}
	mode := packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedImports | packages.NeedModule
	list, err := packages.Load(&packages.Config{Dir: root, Mode: mode}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*typed{}
	for _, p := range list {
		if len(p.Errors) > 0 {
			t.Fatalf("%s: %v", p.PkgPath, p.Errors)
		}
		x := &typed{Package: p, bare: map[string]*ast.File{}}
		dir := ""
		for _, f := range p.Syntax {
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Type.TypeParams == nil {
					d.Body = nil
				}
			}
			path, err := filepath.Rel(root, p.Fset.Position(f.Package).Filename)
			if err != nil {
				t.Fatal(err)
			}
			path = filepath.ToSlash(path)
			dir, x.bare[path] = filepath.ToSlash(filepath.Dir(path)), f
		}
		all[dir] = x
	}
	return all
}

func (p *typed) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if dep, ok := p.Imports[path]; ok {
		return dep.Types, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// check returns the first type error in the changed files, which are of this package.
func (p *typed) check(changed map[string][]byte) (found error) {
	var files []*ast.File
	for path, f := range p.bare {
		if changed[path] == nil {
			files = append(files, f)
		}
	}
	for path, src := range changed {
		if p.bare[path] == nil {
			return nil // a file of another build
		}
		f, err := parser.ParseFile(p.Fset, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	config := types.Config{Importer: p, Sizes: p.TypesSizes, Error: func(err error) {
		if e := err.(types.Error); found == nil && changed[e.Fset.Position(e.Pos).Filename] != nil {
			found = err
		}
	}}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	_, _ = config.Check(p.PkgPath, p.Fset, files, nil) // errors go to config.Error
	return found
}

// Every mutant builds. Names in the text that a mutant inserts are as present as those of
// the text that it replaces.
func TestMutantsBuild(t *testing.T) {
	root := rootOf(t)
	ms := allOf(t)
	pkgs, s := loadTyped(t, root, ms), &sources{root: root}
	for _, m := range ms {
		files, err := m.changed(s)
		if err != nil {
			continue // TestMutantsFitTheCode reports it
		}
		p := pkgs[m.dir]
		if p == nil {
			t.Errorf("%s: no package in %s", m.name, m.dir)
			continue
		}
		if err := p.check(files); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// A mutant that calls what does not exist is found without being built.
func TestTypeErrorsAreFound(t *testing.T) {
	s := weights(t)
	p := loadTyped(t, s.root, []mutant{{dir: "decay"}})["decay"]
	for src, ok := range map[string]bool{
		"package decay\n\ntype Weight uint32\n\nfunc (w Weight) x() { w.y() }\n\nfunc (w Weight) y() {}\n": true,
		"package decay\n\ntype Weight uint32\n\nfunc (w Weight) x() { w.nothingOfThisName() }\n":           false,
	} {
		if err := p.check(map[string][]byte{"decay/decay.go": []byte(src)}); (err == nil) != ok {
			t.Errorf("%v, want success %v, for\n%s", err, ok, src)
		}
	}
}

var _ types.Importer = (*typed)(nil)
