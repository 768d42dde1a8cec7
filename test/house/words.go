// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// banned are words that an exported name or a counter does not have, each with the
// word of the field, or of docs/GLOSSARY.md, for it.
var banned = map[string]string{
	"mend": "recovery", "mending": "recovery", "tend": "recovery timer", "tending": "recovery timer",
	"late": "recovering", "led": "escalated",
	"question": "probe", "questions": "probes", "asked": "probed", "quiet": "unanswered",
	"patience": "timeout", "owed": "expected",
	"crew": "workers", "rouse": "wake", "doze": "sleep", "dozes": "sleep",
	"entrance": "consumer side of a ring", "handon": "handoff", "putoff": "deferred", "unsent": "requeued",
	"shed": "evict", "turndown": "reject",
	"said": "the thing that was announced", "told": "reported", "witness": "control receiver", "farend": "sink",
}

// split returns the words of a name in mixed caps, in lower case: ACKPatience is ack
// and patience.
func split(name string) (words []string) {
	upper := func(i int) bool { return 'A' <= name[i] && name[i] <= 'Z' }
	from := 0
	for i := 1; i < len(name); i++ {
		if upper(i) && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) {
			words = append(words, strings.ToLower(name[from:i]))
			from = i
		}
	}
	return append(words, strings.ToLower(name[from:]))
}

// bannedIn returns the banned word in a name, which may be two words of it, and the
// word for it.
func bannedIn(name string) (word, instead string, ok bool) {
	var before string
	for _, w := range split(name) {
		for _, word := range []string{w, before + w} {
			if instead, ok := banned[word]; ok {
				return word, instead, true
			}
		}
		before = w
	}
	return "", "", false
}

// exported calls visit with each exported name that a file declares: pkg.Name, or
// pkg.Type.Name for fields and methods.
func exported(name string, src []byte, visit func(name string, at token.Position)) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	say := func(id *ast.Ident, of string) {
		if id.IsExported() && (of == "" || ast.IsExported(of)) {
			full := id.Name
			if of != "" {
				full = of + "." + id.Name
			}
			visit(f.Name.Name+"."+full, fset.Position(id.Pos()))
		}
	}
	fields := func(list *ast.FieldList, of string) {
		for _, field := range list.List {
			for _, id := range field.Names {
				say(id, of)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			say(d.Name, receiver(d))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						say(id, "")
					}
				case *ast.TypeSpec:
					say(s.Name, "")
					switch t := s.Type.(type) {
					case *ast.StructType:
						fields(t.Fields, s.Name.Name)
					case *ast.InterfaceType:
						fields(t.Methods, s.Name.Name)
					}
				}
			}
		}
	}
	return nil
}

// receiver returns the type that a method is of, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
