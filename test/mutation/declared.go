// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// importPath is the package with which tests declare mutants.
const importPath = "github.com/gleam-rdma/gleam/test/mutation/mutant"

// declared returns the mutants that the tests of all packages declare.
func declared(root string) ([]mutant, error) {
	var ms []mutant
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(src, []byte(`"`+importPath+`"`)) {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		have, err := inFile(path, dir, src)
		ms = append(ms, have...)
		return err
	})
	return ms, err
}

// inFile reads the declarations of one file of the package in dir.
func inFile(path, dir string, src []byte) (ms []mutant, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}
		f := types.ExprString(call.Fun)
		if f != "mutant.New" && f != "mutant.NewForRoot" {
			return true
		}
		m, bad := declaration(call, dir)
		if bad != nil {
			err = fmt.Errorf("%s: %w", fset.Position(call.Pos()), bad)
		}
		m.root = f == "mutant.NewForRoot"
		ms = append(ms, m)
		return false
	})
	return ms, err
}

// declaration reads mutant.New(name, rule, mutant.In(...)...).
func declaration(call *ast.CallExpr, dir string) (m mutant, err error) {
	if len(call.Args) < 3 {
		return m, fmt.Errorf("want a name, a rule and a change")
	}
	m.dir = filepath.ToSlash(dir)
	if m.name, err = text(call.Args[0]); err != nil {
		return m, err
	}
	if m.rule, err = text(call.Args[1]); err != nil {
		return m, err
	}
	for _, a := range call.Args[2:] {
		in, ok := a.(*ast.CallExpr)
		if !ok || types.ExprString(in.Fun) != "mutant.In" || len(in.Args) < 3 {
			return m, fmt.Errorf("want mutant.In(declaration, old, new)")
		}
		c := change{of: in.Args[0], names: map[string]ast.Expr{}}
		if c.old, err = text(in.Args[1]); err != nil {
			return m, err
		}
		if c.new, err = text(in.Args[2]); err != nil {
			return m, err
		}
		for i, e := range in.Args[3:] {
			c.names["$"+strconv.Itoa(i+1)] = e
		}
		m.changes = append(m.changes, c)
	}
	return m, nil
}

// text reads a string literal.
func text(e ast.Expr) (string, error) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", fmt.Errorf("%s: want a string literal", types.ExprString(e))
	}
	return strconv.Unquote(lit.Value)
}
