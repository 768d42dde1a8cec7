// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gleam-rdma/gleam/test/mutation/pattern"
)

// source is a file of a package, with its declarations.
type source struct {
	path  string // the path in the module, with slashes
	src   []byte
	decls map[string]span // spans by name, Type.Method for methods
}

// span is a declaration.
type span struct {
	start, end int                 // offsets
	named      map[string]ast.Expr // the expressions for $recv and $arg1
}

// sources are the files of the packages, read once.
type sources struct {
	root   string
	limits limits
	every  bool // each test runs, also after one has failed
	mu     sync.Mutex
	dirs   map[string][]*source
}

// at returns the files of a package.
func (s *sources) at(dir string) ([]*source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.dirs[dir]; ok {
		return have, nil
	}
	paths, err := filepath.Glob(filepath.Join(s.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var list []*source
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parse(dir+"/"+filepath.Base(path), src)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	if s.dirs == nil {
		s.dirs = map[string][]*source{}
	}
	s.dirs[dir] = list
	return list, nil
}

func parse(path string, src []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{path: path, src: src, decls: map[string]span{}}
	at := func(n ast.Node) span {
		return span{start: fset.Position(n.Pos()).Offset, end: fset.Position(n.End()).Offset}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			x := at(d)
			x.start = fset.Position(d.Type.Func).Offset // without the comment
			x.named = named(d)
			s.decls[nameOf(d)] = x
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				x := at(spec)
				if !d.Lparen.IsValid() {
					x = at(d)
					x.start = fset.Position(d.TokPos).Offset
				}
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.decls[spec.Name.Name] = x
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						s.decls[n.Name] = x
					}
				}
			}
		}
	}
	return s, nil
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return d.Name.Name
	}
	return typeName(d.Recv.List[0].Type) + "." + d.Name.Name
}

// named returns the expressions for $recv and $arg1.
func named(d *ast.FuncDecl) map[string]ast.Expr {
	m := map[string]ast.Expr{}
	if d.Recv != nil && len(d.Recv.List) == 1 && len(d.Recv.List[0].Names) == 1 {
		m["$recv"] = d.Recv.List[0].Names[0]
	}
	i := 0
	for _, f := range d.Type.Params.List {
		for _, n := range f.Names {
			i++
			m["$arg"+strconv.Itoa(i)] = n
		}
	}
	return m
}

// declName is the name of the declaration that an expression means: f, T.m, (*T).m or T{}.
func declName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return typeName(s.X) + "." + s.Sel.Name
	}
	return typeName(e)
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.ParenExpr:
		return typeName(e.X)
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.CompositeLit:
		return typeName(e.Type)
	}
	return "?"
}

// change is an edit of one declaration: see the package mutant.
type change struct {
	of       ast.Expr
	old, new string
	names    map[string]ast.Expr
}

// replacement is a part of a file that becomes another text.
type replacement struct {
	file       *source
	start, end int
	text       string
}

// find returns the parts of files that a change replaces.
func (c *change) find(files []*source) (r replacement, err error) {
	what, at, have := declName(c.of), "", 0
	for _, f := range files { // by its build constraint, one name may be in several
		d, ok := f.decls[what]
		if !ok {
			continue
		}
		ms, err := pattern.Find(string(f.src[d.start:d.end]), c.old)
		if err != nil {
			return r, err
		}
		at += " " + f.path
		have += len(ms)
		if len(ms) != 1 {
			continue
		}
		names := map[string]ast.Expr{}
		maps.Copy(names, c.names)
		maps.Copy(names, d.named)
		text, err := ms[0].Replacement(c.new, names)
		if err != nil {
			return r, fmt.Errorf("%s: %w", f.path, err)
		}
		r = replacement{f, d.start + ms[0].Start, d.start + ms[0].End, text}
	}
	switch {
	case at == "":
		return r, fmt.Errorf("%s is declared nowhere in its package", types.ExprString(c.of))
	case have != 1:
		return r, fmt.Errorf("%s in%s: the shape of its old text is there %d times, and must be once; bring the mutant up to date:\n%s", types.ExprString(c.of), at, have, c.old)
	}
	return r, nil
}

// changed returns the contents of the files that a mutant changes, by path.
func (m *mutant) changed(s *sources) (map[string][]byte, error) {
	files, err := s.at(m.dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	var rs []replacement
	for i := range m.changes {
		r, err := m.changes[i].find(files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		rs = append(rs, r)
	}
	slices.SortStableFunc(rs, func(a, b replacement) int { return b.start - a.start })
	out, from := map[string][]byte{}, map[string]int{}
	for _, r := range rs {
		src, ok := out[r.file.path]
		if !ok {
			src = r.file.src
		} else if r.end > from[r.file.path] {
			return nil, fmt.Errorf("%s: two changes of the same place", m.name)
		}
		from[r.file.path] = r.start
		out[r.file.path] = slices.Concat(src[:r.start], []byte(r.text), src[r.end:])
	}
	return out, nil
}
