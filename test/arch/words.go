// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
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

// bannedPrinted are words, and pairs of words, that no string of the program has, with
// the word for each: output, logs and messages have the words of the code.
var bannedPrinted = map[string]string{
	"mend": "repair", "mending": "recovery", "tend": "recovery timer", "tending": "recovery timer",
	"question": "probe, lookup or inquiry", "questions": "probes, lookups or inquiries",
	"patience": "timeout", "crew": "workers", "rouse": "wake", "doze": "sleep",
	"handover": "handoff", "relay": "forwarder", "branch": "leg", "branches": "legs",
	"put off": "deferred", "turned down": "rejected", "far end": "the other end",
	"update message": "target message", "old place": "old location",
}

// bannedOnTheWire are words, and pairs of words, that no counter, JSON member, flag,
// configuration key or log key has, besides those of banned and bannedPrinted.
var bannedOnTheWire = map[string]string{
	"of window": "out of range", "group dead": "failed", "awaits members": "verification",
	"bad update": "target message", "updates": "target messages", "mr update": "targets",
	"kept": "retained", "gone": "ended", "separated": "isolated", "place": "location", "places": "locations",
	"most bytes": "max", "longest turn": "longest iteration", "why": "reason", "was": "old",
}

// wordsOnTheWire are names with a word of these lists that are right, each with its reason.
var wordsOnTheWire = map[string]string{
	"kept": "a lab that is kept has an owner that says --keep",
}

// bannedText returns the banned word, or pair of words, in a text or a name with
// underscores or hyphens, and the word for it.
func bannedText(text string, lists ...map[string]string) (word, instead string, ok bool) {
	var before string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		for _, word := range []string{w, before + " " + w, before + w} {
			for _, list := range lists {
				if instead, ok := list[word]; ok {
					return word, instead, true
				}
			}
		}
		before = w
	}
	return "", "", false
}

// wireName matches a name that a program reads: a counter, a flag, a key.
var wireName = regexp.MustCompile(`^[a-z][a-z0-9]*([_-][a-z0-9]+)*$`)

// printed calls visit with each string of a file, the names in struct tags included, but
// not import paths; wire says whether it is a name that a program reads.
func printed(name string, src []byte, visit func(text string, wire bool, at token.Position)) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				tag, _ := strconv.Unquote(n.Tag.Value)
				for _, kind := range []string{"json", "yaml"} {
					key, _, _ := strings.Cut(reflect.StructTag(tag).Get(kind), ",")
					visit(key, true, fset.Position(n.Tag.Pos()))
				}
				n.Tag = nil
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, _ := strconv.Unquote(n.Value)
				visit(text, wireName.MatchString(text), fset.Position(n.Pos()))
			}
		}
		return true
	})
	return nil
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
