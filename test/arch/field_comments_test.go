// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/token"
	"path"
	"strings"
	"testing"
)

// The comment behind a field, a constant or a variable says what it is: it begins with a noun,
// or with "true:".
func TestFieldCommentsBeginWithNouns(t *testing.T) {
	found := make(map[string][]string)
	for name, src := range goFiles(t) {
		if err := withoutNoun(name, src, func(word, comment string, at token.Position) {
			dir := path.Dir(name)
			found[dir] = append(found[dir], at.String()+": "+comment)
		}); err != nil {
			t.Error(err)
		}
	}
	for dir, comments := range found {
		t.Errorf("%s has %d comments of fields that begin without a noun: say what the field is, as in \"the MTU of the link\" or \"true: the link is up\":\n%s",
			dir, len(comments), strings.Join(comments, "\n"))
	}
}

func TestCommentsWithoutNounAreFound(t *testing.T) {
	src := `package p

type t struct {
	a int // of the link
	b int // the MTU of the link
	// for a reader
	c int
	d bool // true: it is up
	e int  // Of of
	f int  // offset
}

const g = 1 // in bytes

var h, i = 1, 2 // bytes
var _ = func() {
	var j int // that is counted
	_ = j     // by nobody
}
`
	var words []string
	if err := withoutNoun("p.go", []byte(src), func(word, _ string, _ token.Position) { words = append(words, word) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(words, " "); got != "of in that" {
		t.Errorf("words are %q", got)
	}
}
