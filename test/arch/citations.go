// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// page is a Markdown file, with the numbers of its sections.
type page map[string]bool

var headings = regexp.MustCompile(`(?m)^(?:## (\d+)\.|### (\d+\.\d+)) `)

func newPage(text string) page {
	p := make(page)
	for _, m := range headings.FindAllStringSubmatch(text, -1) {
		p[m[1]+m[2]] = true
	}
	return p
}

// gap matches the characters between two words of a sentence in a comment: white space,
// and the signs that begin a comment's next line.
const gap = `(?:[ \t]|\n[ \t]*(?://|\*|#|>)?)*`

var (
	// sections are citations of a section, by sign or by word.
	sections = regexp.MustCompile(`(§+|\b[Ss]ections?)` + gap + `(\d+(?:\.\d+)*)(` + gap + `of` + gap + `([\w/-]+\.\w+))?`)
	// before is the document that a citation follows.
	before = regexp.MustCompile(`(RFC` + gap + `\d+|IBTA|IEEE` + gap + `[\w.]+|[\w/-]+\.[a-z]+)\)?,?` + gap + `$`)
	// another is a citation that one more of the same document follows.
	another = regexp.MustCompile(`§\d+(?:\.\d+)*(?:,|;|` + gap + `and|` + gap + `or|-)?` + gap + `$`)

	pageNames = regexp.MustCompile(`[\w/.-]*[\w-]+\.md\b`)
)

// writtenPages are pages that programs write (gleam hardware), and the repository does not have.
var writtenPages = set("report.md")

// citations returns the wrong citations in text, a file of the repository called name:
// those of a section that does not exist, and those of a document that is neither in the
// repository nor a published standard. pages are the Markdown files by path.
func citations(name, text string, pages map[string]page) (wrong []string) {
	say := func(at int, format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s:%d: %s", name, 1+strings.Count(text[:at], "\n"), fmt.Sprintf(format, args...)))
	}
	last := ""
	for _, m := range sections.FindAllStringSubmatchIndex(text, -1) {
		at, number := m[0], text[m[4]:m[5]]
		doc := ""
		switch head := text[max(0, at-80):at]; {
		case m[8] >= 0:
			doc = text[m[8]:m[9]]
		case before.MatchString(head):
			doc = before.FindStringSubmatch(head)[1]
		case another.MatchString(head):
			doc = last
		case strings.HasSuffix(name, ".md"):
			doc = path.Base(name)
		}
		last = doc
		switch p := find(doc, pages); {
		case doc == "":
			say(at, "§%s of what? Name the document, as in RC.md §%s", number, number)
		case strings.HasPrefix(doc, "RFC"), doc == "IBTA", strings.HasPrefix(doc, "IEEE"):
		case p == nil:
			say(at, "%s §%s: there is no such document in the repository", doc, number)
		case !p[number]:
			say(at, "%s has no section %s", doc, number)
		}
	}
	for _, m := range pageNames.FindAllStringIndex(text, -1) {
		if doc := text[m[0]:m[1]]; find(doc, pages) == nil && !writtenPages[doc] {
			say(m[0], "%s is not in the repository", doc)
		}
	}
	return wrong
}

// find returns the page that is called doc: by its path, or by its name if it is at the
// top or in docs.
func find(doc string, pages map[string]page) page {
	doc = strings.TrimLeft(doc, "./")
	for _, dir := range []string{"", "docs"} {
		if p := pages[path.Join(dir, doc)]; p != nil {
			return p
		}
	}
	return nil
}
