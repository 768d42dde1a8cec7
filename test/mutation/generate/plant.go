// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// planted is the variable from which the code reads the number of the active mutant.
const planted = "plantedMutant"

// support is a file that every package with mutants gets.
const support = `package %s

import (
	"os"
	"strconv"
)

// plantedMutant is the number of the active mutant; 0: there is none.
var plantedMutant, _ = strconv.Atoi(os.Getenv("` + numberEnv + `"))

func plantedSign[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr](n int, a, b T, minus bool) T {
	if (n == plantedMutant) != minus {
		return a - b
	}
	return a + b
}
`

// numberEnv is the environment variable with the number of the active mutant.
const numberEnv = "GLEAM_PLANTED_MUTANT"

// rewrite returns the file with all its mutants in it, each behind its number. Lines
// stay where they are.
func (f *finder) rewrite(file *ast.File) string { return f.render(file, nil) }

// render returns the source of n with the mutants inside it. Of n itself only those
// in rest are planted.
func (f *finder) render(n ast.Node, rest []*site) string {
	if len(rest) > 0 {
		return f.plant(n, rest)
	}
	var out strings.Builder
	from := f.offset(n.Pos())
	if _, ok := n.(*ast.File); ok {
		from = 0
	}
	end := f.offset(n.End())
	if _, ok := n.(*ast.File); ok {
		end = len(f.src)
	}
	for _, inner := range f.outermost(n) {
		out.Write(f.src[from:f.offset(inner.Pos())])
		out.WriteString(f.render(inner, f.at[inner]))
		from = f.offset(inner.End())
	}
	out.Write(f.src[from:end])
	return out.String()
}

// outermost returns the nodes inside n that have mutants and are inside no other.
func (f *finder) outermost(n ast.Node) (list []ast.Node) {
	ast.Inspect(n, func(x ast.Node) bool {
		if x == nil || x == n {
			return x != nil
		}
		if len(f.at[x]) > 0 {
			list = append(list, x)
			return false
		}
		return true
	})
	slices.SortFunc(list, func(a, b ast.Node) int { return cmp.Compare(a.Pos(), b.Pos()) })
	return list
}

// plant puts the last of sites around n.
func (f *finder) plant(n ast.Node, sites []*site) string {
	s, rest := sites[len(sites)-1], sites[:len(sites)-1]
	alive := fmt.Sprintf("%s == %d", planted, s.id)
	dead := fmt.Sprintf("%s != %d", planted, s.id)
	inner := func() string { return f.render(n, rest) }
	switch s.op {
	case opNegate:
		return "((" + inner() + ") != (" + alive + "))"
	case opOperand + " of &&":
		return "(" + alive + " || (" + inner() + "))"
	case opOperand + " of ||":
		return "(" + dead + " && (" + inner() + "))"
	case opBoundary:
		b := n.(*ast.BinaryExpr)
		x, y := f.render(b.X, f.at[b.X]), f.render(b.Y, f.at[b.Y])
		equal := "((" + x + ") == (" + y + "))"
		if b.Op == token.LSS || b.Op == token.GTR {
			return "(" + inner() + " || " + alive + " && " + equal + ")"
		}
		return "(" + inner() + " && !(" + alive + " && " + equal + "))"
	case opSign:
		return f.plantSign(n, s, inner)
	case opDrop:
		return "if " + dead + " { " + inner() + " }"
	}
	panic("no such operator: " + s.op)
}

func (f *finder) plantSign(n ast.Node, s *site, inner func() string) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		x, y := f.render(n.X, f.at[n.X]), f.render(n.Y, f.at[n.Y])
		return fmt.Sprintf("%sSign(%d, %s, %s, %t)", "planted", s.id, x, y, n.Op == token.SUB)
	case *ast.AssignStmt:
		x, y := f.render(n.Lhs[0], f.at[n.Lhs[0]]), f.render(n.Rhs[0], f.at[n.Rhs[0]])
		other := "-="
		if n.Tok == token.SUB_ASSIGN {
			other = "+="
		}
		return fmt.Sprintf("if %s != %d { %s } else { %s %s %s }", planted, s.id, inner(), x, other, y)
	case *ast.IncDecStmt:
		x := f.render(n.X, f.at[n.X])
		other := "--"
		if n.Tok == token.DEC {
			other = "++"
		}
		return fmt.Sprintf("if %s != %d { %s } else { %s%s }", planted, s.id, inner(), x, other)
	}
	panic("a sign of what is no sum")
}
