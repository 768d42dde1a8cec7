// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

const locatePath = module + "/internal/control/locate"

// A location is whole or none (locate.Location): its own package makes whole ones, and no other puts
// one together or changes a part of one.
func TestLocationsAreMadeInOnePackage(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:  root, Env: append(os.Environ(), "CGO_ENABLED=0"),
	}, module+"/internal/control/...", module+"/cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	users := 0
	for _, p := range loaded {
		if p.PkgPath == locatePath || p.Imports[locatePath] == nil {
			continue
		}
		users++
		for _, e := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, e)
		}
		for _, f := range p.Syntax {
			for _, pos := range partsOfLocations(f, p.TypesInfo, locatePath) {
				t.Errorf("%s: a location is put together here: let package locate do it", p.Fset.Position(pos))
			}
		}
	}
	if users == 0 {
		t.Error("no package uses locations: the test looks at nothing")
	}
}

// partsOfLocations returns where a file builds a value of type Location of package path from its
// fields, or sets a field of one.
func partsOfLocations(f *ast.File, info *types.Info, path string) (at []token.Pos) {
	isLocation := func(t types.Type) bool {
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		n, ok := types.Unalias(t).(*types.Named)
		return ok && n.Obj().Name() == "Location" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if len(n.Elts) > 0 && isLocation(info.TypeOf(n)) {
				at = append(at, n.Pos())
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if partOfLocation(l, info, isLocation) {
					at = append(at, l.Pos())
				}
			}
		case *ast.IncDecStmt:
			if partOfLocation(n.X, info, isLocation) {
				at = append(at, n.Pos())
			}
		}
		return true
	})
	return at
}

// partOfLocation reports whether an expression is a field of a location, or a part of one.
func partOfLocation(x ast.Expr, info *types.Info, isLocation func(types.Type) bool) bool {
	for {
		switch e := x.(type) {
		case *ast.SelectorExpr:
			if t := info.TypeOf(e.X); t != nil && isLocation(t) {
				return true
			}
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.ParenExpr:
			x = e.X
		default:
			return false
		}
	}
}

func TestPartsOfLocationsAreFound(t *testing.T) {
	const src = `package p

type Location struct{ Links []int; Learnt struct{ Port int } }

type host struct{ at Location; n int }

func f(h *host, l *Location) {
	_ = Location{}
	_ = Location{Links: nil}
	_ = []Location{{}, {Links: nil}}
	h.at = Location{}
	h.at.Links = nil
	h.at.Links[0] = 1
	(l.Learnt).Port++
	h.n, l.Links = 1, nil
	h.n++
}
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: importer.Default()}).Check("p", fset, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, pos := range partsOfLocations(f, info, "p") {
		lines = append(lines, fmt.Sprint(fset.Position(pos).Line))
	}
	if want := []string{"9", "10", "12", "13", "14", "15"}; !slices.Equal(lines, want) {
		t.Errorf("found in lines %v, want %v", lines, want)
	}
}
