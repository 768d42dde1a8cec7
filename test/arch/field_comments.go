// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
)

// noNoun are words that the comment behind a field, a constant or a variable does not begin
// with. "of the link" says something to a reader of the code alone; "the MTU of the link" says
// it to everybody.
var noNoun = set("of", "that", "by", "for", "with", "it", "to", "from", "else", "which", "until", "since", "in", "at", "on", "after", "before",
	"as", "if", "when", "whether", "and", "so", "is", "has", "between", "under", "within", "without", "while", "whose", "or")

// firstWord matches the first word of a comment.
var firstWord = regexp.MustCompile(`^// *([a-z]+)\b`)

// withoutNoun calls visit with each comment behind a field, a constant or a variable of a
// file that begins with a word of noNoun.
func withoutNoun(name string, src []byte, visit func(word, comment string, at token.Position)) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		var behind *ast.CommentGroup
		switch n := n.(type) {
		case *ast.Field:
			behind = n.Comment
		case *ast.ValueSpec:
			behind = n.Comment
		}
		if behind == nil {
			return true
		}
		if m := firstWord.FindStringSubmatch(behind.List[0].Text); m != nil && noNoun[m[1]] {
			visit(m[1], behind.List[0].Text, fset.Position(behind.Pos()))
		}
		return true
	})
	return nil
}
