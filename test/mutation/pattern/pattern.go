// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package pattern finds Go source by its shape and replaces it: an identifier in the old
// text matches any identifier.
package pattern

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// word is a token of Go source.
type word struct {
	tok        token.Token
	text       string
	start, end int  // offsets
	field      bool // follows a dot
}

// any reports whether the word matches any identifier.
func (w *word) any() bool {
	return w.tok == token.IDENT && w.text != "_" && (w.field || types.Universe.Lookup(w.text) == nil)
}

// words splits source. Comments, and semicolons that are line ends, are left out.
func words(src string) ([]word, error) {
	var (
		s    scanner.Scanner
		list []word
		bad  error
	)
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, []byte(src), func(_ token.Position, msg string) {
		if bad == nil {
			bad = fmt.Errorf("%s in %q", msg, src)
		}
	}, 0)
	for {
		pos, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return list, bad
		case tok == token.SEMICOLON && lit != ";":
			continue
		case lit == "" || tok == token.SEMICOLON:
			lit = tok.String()
		}
		at := file.Offset(pos)
		field := len(list) > 0 && list[len(list)-1].tok == token.PERIOD
		list = append(list, word{tok, lit, at, at + len(lit), field})
	}
}

// Match is a place that has the shape of a text.
type Match struct {
	Start, End int // offsets in the source
	names      map[name]string
}

// name is an identifier of the text. A variable and a field of the same name are two.
type name struct {
	text  string
	field bool
}

// ambiguous stands for an identifier of the old text that has matched several.
const ambiguous = "?"

// Find returns the places in src that have the shape of old.
func Find(src, old string) ([]Match, error) {
	in, err := words(src)
	if err != nil {
		return nil, err
	}
	of, err := words(old)
	if err != nil {
		return nil, err
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("an empty text is everywhere")
	}
	var ms []Match
	for i := 0; i+len(of) <= len(in); i++ {
		if m, ok := meets(in[i:i+len(of)], of); ok {
			ms = append(ms, m)
		}
	}
	return ms, nil
}

// meets reports whether the words match, one by one.
func meets(in, of []word) (Match, bool) {
	m := Match{in[0].start, in[len(in)-1].end, map[name]string{}}
	for i := range of {
		f, x := &of[i], &in[i]
		if f.tok != x.tok || f.field != x.field && i > 0 {
			return Match{}, false
		}
		if !f.any() {
			if f.text != x.text {
				return Match{}, false
			}
			continue
		}
		if !x.any() {
			return Match{}, false
		}
		n := name{f.text, f.field}
		if have, ok := m.names[n]; ok && have != x.text {
			m.names[n] = ambiguous
			continue
		}
		m.names[n] = x.text
	}
	return m, true
}

// Replacement returns the text new, with its identifiers replaced by those that the old
// text's have matched, and its numbers by names.
func (m *Match) Replacement(new string, names map[string]ast.Expr) (string, error) {
	marked, numbers := number(new)
	list, err := words(marked)
	if err != nil {
		return "", err
	}
	declared := declares(list)
	var out strings.Builder
	from := 0
	for i := range list {
		w := &list[i]
		if !w.any() {
			continue
		}
		text, ok := m.names[name{w.text, w.field}]
		switch key := numbers[w.text]; {
		case key != "":
			e := names[key]
			if e == nil {
				return "", fmt.Errorf("%s stands for nothing in %q", key, new)
			}
			text = spelled(e, w.field)
		case ok && text == ambiguous:
			return "", fmt.Errorf("%s of %q has met several names: write one as a number", w.text, new)
		case !ok && slices.Contains(declared, w.text):
			continue
		case !ok:
			return "", fmt.Errorf("%s of %q is not in the old text: write it as a number", w.text, new)
		}
		out.WriteString(marked[from:w.start])
		out.WriteString(text)
		from = w.end
	}
	out.WriteString(marked[from:])
	return out.String(), nil
}

// spelled returns the name that an expression means: that of a field by T{}.field, of a
// method by (*T).method, of a type by T{} or T(0), of a generic function by f[int].
// Behind a dot it is the last identifier.
func spelled(e ast.Expr, field bool) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		switch e.X.(type) {
		case *ast.CompositeLit, *ast.ParenExpr:
			return e.Sel.Name
		}
		if field {
			return e.Sel.Name
		}
	case *ast.UnaryExpr:
		return spelled(e.X, field)
	case *ast.CompositeLit:
		return spelled(e.Type, field)
	case *ast.CallExpr:
		return spelled(e.Fun, field)
	case *ast.IndexExpr:
		return spelled(e.X, field)
	}
	return types.ExprString(e)
}

// number turns $1, $recv and $arg1, which are no Go, into identifiers.
func number(text string) (string, map[string]string) {
	numbers := map[string]string{}
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			out.WriteString(text)
			return out.String(), numbers
		}
		end := at + 1
		for end < len(text) && (text[end] >= 'a' && text[end] <= 'z' || text[end] >= '0' && text[end] <= '9') {
			end++
		}
		id := "name_" + text[at+1:end]
		numbers[id] = text[at:end]
		out.WriteString(text[:at] + id)
		text = text[end:]
	}
}

// declares lists the variables that a text declares by := or var.
func declares(list []word) (names []string) {
	for i, w := range list {
		switch {
		case w.tok == token.VAR && i+1 < len(list):
			names = append(names, list[i+1].text)
		case w.tok == token.DEFINE:
			for j := i - 1; j >= 0 && (list[j].tok == token.IDENT || list[j].tok == token.COMMA); j-- {
				names = append(names, list[j].text)
			}
		}
	}
	return names
}
