// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutant lets the tests of a package declare the mistakes that these tests must
// notice:
//
//	var _ = []mutant.Mutant{
//		mutant.New("every duplicate is answered", "R12", mutant.In((*group).duplicate,
//			"if p.AckReq || rewind {",
//			"if p.AckReq || rewind || !rewind {")),
//	}
//
// The command in the folder above finds these lists in the source, makes the mistakes
// one at a time, and runs the tests. In an ordinary run of the tests the lists have no
// effect.
//
// A rename leaves every mutant working. The function is a Go expression, which a rename
// changes with the rest of the code. In the old text an identifier stands for any
// identifier; in the new text it stands for the one that it matched in the old text. So
// the shape of the old text must occur in the function once; the names in both texts are
// for the reader only. Names that Go declares (nil, len, uint32) and literals match
// themselves.
// Spaces, line ends and comments do not count.
//
// A name that is only in the new text is written as a number: $1 is the first of the
// expressions after the texts, of which only the last identifier counts behind a dot. A
// field is named by T{}.field, a method by (*T).method, a type by T{} or T(0);
// &(&T{}).field is a field that must not be copied.
// $recv is the receiver of the function, $arg1 its first parameter.
package mutant

// Mutant is a wrong version of the package that declares it.
type Mutant struct{}

// Edit is a change of one declaration.
type Edit struct{}

// New declares a mutant: a few words that no other mutant has, and the rule of
// docs/AGGREGATION.md or the section of a document that it breaks.
func New(name, rule string, edits ...Edit) Mutant { return Mutant{} }

// NewForRoot declares a mutant that only tests with root's rights can notice.
func NewForRoot(name, rule string, edits ...Edit) Mutant { return Mutant{} }

// In is a change of the declaration of function, which may be a method expression, a
// variable, a constant, or a value T{} of a type: old becomes new.
func In(declaration any, old, new string, names ...any) Edit { return Edit{} }
