// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs has the rules of the switch for programs that print them, from the documents that
// they stand in.
package docs

import "embed"

// rulesPage has the rules; morePages have sections about rules, which name them in their titles.
const rulesPage = "AGGREGATION.md"

var morePages = []string{"RC.md", "TREES.md", "FAST-PATH.md"}

//go:embed AGGREGATION.md RC.md TREES.md FAST-PATH.md
var pages embed.FS

// page returns the text of a document. A document that is not embedded has none.
func page(name string) string {
	b, _ := pages.ReadFile(name)
	return string(b)
}
