// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// site is a place in the code where one mutant is planted.
type site struct {
	id   int
	file string // the path in the module, with slashes
	line int
	fn   string // the function, Type.Method or ""
	op   string // one of the operators below
	text string // the source that is changed
	same int    // how many sites before it in fn have the same op and text
}

// Operators. Each makes one change that compiles in any context.
const (
	opNegate   = "negate"   // negation: if c → if !c; also for, switch { case c: } and a returned bool
	opOperand  = "operand"  // a && b → b, or a; a || b likewise
	opBoundary = "boundary" // a < b → a <= b, and the other three
	opSign     = "sign"     // a + b → a - b, and the reverse; also += and ++
	opDrop     = "drop"     // a statement that is a call, an assignment, ++, continue, break or a bare return
)

// key names the site so that it is found again after lines were added elsewhere.
func (s *site) key() string {
	return fmt.Sprintf("%s %s %s %q #%d", s.file, s.fn, s.op, s.text, s.same)
}

// finder collects the sites of one file, in source order.
type finder struct {
	info    *types.Info
	file    string
	src     []byte
	fset    *token.FileSet
	fn      string
	results bool // the function returns something
	add     func(n ast.Node, op string, text string) *site
	at      map[ast.Node][]*site
}

// mark makes a site at n.
func (f *finder) mark(n ast.Node, op string, what ast.Node) {
	f.at[n] = append(f.at[n], f.add(n, op, f.textOf(what)))
}

func (f *finder) textOf(n ast.Node) string {
	return string(f.src[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// constant reports whether the compiler knows the value of e: no mutant in it could be
// chosen at run time.
func (f *finder) constant(e ast.Expr) bool {
	tv, ok := f.info.Types[e]
	return ok && tv.Value != nil && tv.Value.Kind() != constant.Unknown
}

// integer reports whether e is an integer that is no constant.
func (f *finder) integer(e ast.Expr) bool {
	t := f.info.TypeOf(e)
	if t == nil || f.constant(e) {
		return false
	}
	if _, generic := types.Unalias(t).(*types.TypeParam); generic {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// boolean reports whether e is of type bool, and no constant.
func (f *finder) boolean(e ast.Expr) bool {
	t := f.info.TypeOf(e)
	if t == nil || f.constant(e) {
		return false
	}
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// decl makes the sites of a function.
func (f *finder) decl(d *ast.FuncDecl) {
	if d.Body == nil {
		return
	}
	f.fn = d.Name.Name
	if d.Recv != nil && len(d.Recv.List) == 1 {
		f.fn = receiver(d.Recv.List[0].Type) + "." + f.fn
	}
	if d.Name.Name == "String" || d.Name.Name == "Error" || d.Name.Name == "init" {
		return // words
	}
	f.body(d.Type, d.Body)
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// body makes the sites of the body of a function or function literal.
func (f *finder) body(t *ast.FuncType, b *ast.BlockStmt) {
	outer := f.results
	f.results = t.Results != nil && len(t.Results.List) > 0
	ast.Inspect(b, f.visit)
	f.results = outer
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		f.body(n.Type, n.Body)
		return false
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					f.condition(e)
				}
			}
		}
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			if f.boolean(e) || f.truth(e) {
				f.condition(e)
			}
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.GenDecl:
		return n.Tok == token.VAR
	}
	return true
}

// truth reports whether e is true or false.
func (f *finder) truth(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && (id.Name == "true" || id.Name == "false")
}

func (f *finder) condition(e ast.Expr) {
	if f.boolean(e) || f.truth(e) {
		f.mark(e, opNegate, e)
	}
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if f.constant(n) {
		return
	}
	switch n.Op {
	case token.LAND, token.LOR:
		for _, e := range []ast.Expr{n.X, n.Y} {
			if f.boolean(e) {
				f.mark(e, opOperand+" of "+n.Op.String(), e)
			}
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.mark(n, opBoundary, n)
	case token.ADD, token.SUB:
		if f.integer(n) {
			f.mark(n, opSign, n)
		}
	}
}

// statements makes the sites of statements that can be left out.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok && f.hasEffect(c) {
				f.mark(s, opDrop, s)
			}
		case *ast.AssignStmt:
			switch s.Tok {
			case token.DEFINE:
				continue
			case token.ADD_ASSIGN, token.SUB_ASSIGN:
				if f.integer(s.Lhs[0]) {
					f.mark(s, opSign, s)
				}
			}
			if !blank(s.Lhs) {
				f.mark(s, opDrop, s)
			}
		case *ast.IncDecStmt:
			f.mark(s, opSign, s)
			f.mark(s, opDrop, s)
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE || s.Tok == token.BREAK {
				f.mark(s, opDrop, s)
			}
		case *ast.ReturnStmt:
			if !f.results {
				f.mark(s, opDrop, s)
			}
		}
	}
}

func blank(es []ast.Expr) bool {
	for _, e := range es {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// hasEffect is false for a call that stays: one that ends the program because of a defect
// in the program itself.
func (f *finder) hasEffect(c *ast.CallExpr) bool {
	id, ok := c.Fun.(*ast.Ident)
	return !ok || id.Name != "panic"
}
