// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"flag"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var writePublic = flag.Bool("write-public", false, "TestPublicPackages writes testdata/public")

// public are the packages for other programs.
var public = []string{"api", "host/endpoint", "host/endpoint/oob", "host/endpoint/soft", "host/endpoint/verbs"}

// What the public packages export is in testdata/public, a line each. A line that vanishes
// breaks programs; the test makes each such change a decision.
func TestPublicPackages(t *testing.T) {
	for _, p := range loadPublic(t) {
		short := strings.TrimPrefix(p.PkgPath, module+"/")
		got := strings.Join(exports(p.Types), "\n") + "\n"
		file := filepath.Join("testdata", "public", strings.ReplaceAll(short, "/", "_")+".txt")
		if *writePublic {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range missing(string(want), got) {
			t.Errorf("%s no longer has: %s", short, l)
		}
		for _, l := range missing(got, string(want)) {
			t.Errorf("%s has what testdata/public lacks: %s", short, l)
		}
		if t.Failed() {
			t.Log("a change that is meant: go test ./test/arch -run TestPublicPackages -write-public, and a line in CHANGELOG.md")
		}
	}
}

// loadPublic returns the public packages with their types.
func loadPublic(t *testing.T) []*packages.Package {
	t.Helper()
	patterns := make([]string, len(public))
	for i, p := range public {
		patterns[i] = module + "/" + p
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:  root, Env: append(os.Environ(), "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != len(public) {
		t.Fatalf("%d packages are loaded of %d", len(loaded), len(public))
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, e)
		}
	}
	return loaded
}

// missing returns the lines of a that b lacks.
func missing(a, b string) (lines []string) {
	in := strings.Split(b, "\n")
	for l := range strings.SplitSeq(a, "\n") {
		if !slices.Contains(in, l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// exports returns a line for each exported name of p, field and method, in order.
func exports(p *types.Package) (lines []string) {
	name := func(q *types.Package) string {
		if q == p {
			return ""
		}
		return strings.TrimPrefix(q.Path(), module+"/")
	}
	for _, n := range p.Scope().Names() {
		if !token.IsExported(n) {
			continue
		}
		o := p.Scope().Lookup(n)
		tn, ok := o.(*types.TypeName)
		if !ok {
			lines = append(lines, types.ObjectString(o, name))
			continue
		}
		// An alias is a promise of the other package's type.
		lines = append(lines, "type "+n+" "+kind(tn.Type().Underlying(), name))
		switch u := tn.Type().Underlying().(type) {
		case *types.Struct:
			for f := range u.Fields() {
				if f.Exported() {
					lines = append(lines, "field "+n+"."+f.Name()+" "+types.TypeString(f.Type(), name))
				}
			}
		case *types.Interface:
			for m := range u.Methods() {
				lines = append(lines, "method "+n+"."+m.Name()+" "+types.TypeString(m.Type(), name))
			}
			continue
		}
		set := types.NewMethodSet(types.NewPointer(tn.Type()))
		for s := range set.Methods() {
			if s.Obj().Exported() {
				lines = append(lines, "method "+n+"."+s.Obj().Name()+" "+types.TypeString(s.Type(), name))
			}
		}
	}
	return lines
}

// kind returns a type's underlying type without what is listed by itself.
func kind(t types.Type, name types.Qualifier) string {
	switch t.(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	}
	return types.TypeString(t, name)
}
