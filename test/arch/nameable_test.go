// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// Whoever imports the public packages can name each type that they meet there: in signatures, fields, embedded types
// and type arguments of what is exported, and in those of the types that aliases export.
func TestPublicTypesCanBeNamed(t *testing.T) {
	var all []*types.Package
	for _, p := range loadPublic(t) {
		all = append(all, p.Types)
	}
	for _, f := range unnameable(all, func(path string) bool { return strings.Contains(path+"/", "/internal/") }) {
		t.Errorf("%s: other modules cannot name it; a public package exports an alias of it (host/endpoint/names.go), or what mentions it is not exported", f)
	}
}

// unnameable returns what the packages export that mentions a type of a hidden package without an alias, each
// with the first place that does.
func unnameable(all []*types.Package, hidden func(path string) bool) (faults []string) {
	aliased := map[*types.TypeName]bool{}
	for _, p := range all {
		for _, n := range p.Scope().Names() {
			if tn, ok := p.Scope().Lookup(n).(*types.TypeName); ok && tn.Exported() {
				if named, ok := types.Unalias(tn.Type()).(*types.Named); ok {
					aliased[named.Origin().Obj()] = true
				}
			}
		}
	}
	seen := map[types.Type]bool{}
	told := map[*types.TypeName]bool{}
	var visit func(where string, t types.Type)
	// members visits the fields and methods of a type that has a name.
	members := func(where string, t *types.Named) {
		visit(where, t.Underlying())
		for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
			if m.Obj().Exported() {
				visit(where+"."+m.Obj().Name(), m.Type())
			}
		}
	}
	visit = func(where string, t types.Type) {
		t = types.Unalias(t)
		if seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Named:
			o := t.Obj()
			for a := range t.TypeArgs().Types() {
				visit(where, a)
			}
			switch {
			case o.Pkg() == nil || !aliased[t.Origin().Obj()] && !hidden(o.Pkg().Path()) && !slices.Contains(all, o.Pkg()):
			case aliased[t.Origin().Obj()]:
				members(o.Name(), t)
			case slices.Contains(all, o.Pkg()): // not exported, but what it promotes is met
				members(where, t)
			case !told[o]:
				told[o] = true
				faults = append(faults, where+" mentions "+o.Pkg().Path()+"."+o.Name())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() || f.Embedded() {
					visit(where+"."+f.Name(), f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				if m.Exported() {
					visit(where+"."+m.Name(), m.Type())
				}
			}
			for e := range t.EmbeddedTypes() {
				visit(where, e)
			}
		case *types.Union:
			for term := range t.Terms() {
				visit(where, term.Type())
			}
		case *types.Signature:
			for p := range t.TypeParams().TypeParams() {
				visit(where, p.Constraint())
			}
			visit(where, t.Params())
			visit(where, t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				visit(where, v.Type())
			}
		case *types.Map:
			visit(where, t.Key())
			visit(where, t.Elem())
		case interface{ Elem() types.Type }:
			visit(where, t.Elem())
		}
	}
	for _, p := range all {
		for _, n := range p.Scope().Names() {
			if o := p.Scope().Lookup(n); o.Exported() {
				visit(p.Name()+"."+n, o.Type())
			}
		}
	}
	return faults
}

// packagesOf are the packages of some sources, by their paths, each checked after those that it imports.
type packagesOf map[string]*types.Package

// Import returns one that was checked.
func (p packagesOf) Import(path string) (*types.Package, error) { return p[path], nil }

// Each place where a type can be met is looked at.
func TestUnnameable(t *testing.T) {
	all := packagesOf{}
	check := func(path, text string) *types.Package {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := (&types.Config{Importer: all}).Check(path, fset, []*ast.File{f}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = p
		return p
	}
	check("m/internal/deep", "package deep; type D int")
	check("m/internal/inner", `package inner
import "m/internal/deep"
type (
	A struct{ F int; hidden C }
	B struct{ F C }
	C int
	G[T any] struct{ F T }
	M int
	E struct{}
	Alias = C
)
func (M) Deep() deep.D { return 0 }
func (M) deep() C { return 0 }
func (E) Promoted(C) {}
`)
	for text, want := range map[string]string{
		`type N = inner.A`: ``,
		`type N = inner.A; func F(N, *inner.A, []inner.A)`:     ``,
		`func f(inner.C); type t struct{ F inner.C }`:          ``,
		`type N struct{ f inner.C }`:                           ``,
		`func F(inner.C)`:                                      `p.F mentions m/internal/inner.C`,
		`func F(inner.Alias)`:                                  `p.F mentions m/internal/inner.C`,
		`func F(...inner.C)`:                                   `p.F mentions m/internal/inner.C`,
		`func F() <-chan map[string][]*inner.C`:                `p.F mentions m/internal/inner.C`,
		`func F[T interface{ ~int; inner.C }]() {}`:            `p.F mentions m/internal/inner.C`,
		`var V inner.C`:                                        `p.V mentions m/internal/inner.C`,
		`type N struct{ F func(inner.C) }`:                     `N.F mentions m/internal/inner.C`,
		`type N struct{ inner.E }`:                             `N.E mentions m/internal/inner.E; N.Promoted mentions m/internal/inner.C`,
		`type N struct{ t }; type t struct{ F inner.C }`:       `N.t.F mentions m/internal/inner.C`,
		`type N int; func (N) M(inner.C) {}`:                   `N.M mentions m/internal/inner.C`,
		`type N interface{ M() inner.C }`:                      `N.M mentions m/internal/inner.C`,
		`type N = inner.B`:                                     `B.F mentions m/internal/inner.C`,
		`type N = inner.M`:                                     `M.Deep mentions m/internal/deep.D`,
		`type N = inner.G[int]; func F(inner.G[inner.C])`:      `p.F mentions m/internal/inner.C`,
		`func F() t; type t struct{ F inner.C }`:               `p.F.F mentions m/internal/inner.C`,
		`type N = inner.A; type O = inner.B; type P = inner.C`: ``,
	} {
		p := check("p", "package p; import \"m/internal/inner\"; "+text)
		if got := strings.Join(unnameable([]*types.Package{p}, func(path string) bool { return strings.HasPrefix(path, "m/internal/") }), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
