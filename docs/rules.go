// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Rule is a rule of the switch.
type Rule struct {
	Name    string `json:"rule"` // R43
	Title   string `json:"title"`
	Chapter string `json:"chapter"`
	Text    string `json:"text"` // what holds and why, as the document has it
	// Tests are the tests to read first: transcripts in mcast/testdata, or functions of mcast.
	Tests []string `json:"tests"`
	// Sections are those, of any document, that say more about the rule.
	Sections []Section `json:"sections,omitempty"`
}

// Section is a section of a document with details of rules.
type Section struct {
	Page  string `json:"page"` // the document's name
	Title string `json:"title"`
	Text  string `json:"text"` // the text as the document has it
}

var (
	heading     = regexp.MustCompile(`(?m)^(#{2,4}) (.+)$`)
	ruleHeading = regexp.MustCompile(`^<a id="r(\d{2,3})"></a>R(\d{2,3})\. (.+)$`)
	testsLine   = regexp.MustCompile(`^(?:Transcripts?|Tests?): `)
	testName    = regexp.MustCompile("\\[(R\\d+_\\w+)\\]|`(TestR\\d+_\\w+)`")
	namedRules  = regexp.MustCompile(`\(((?:R\d{2,3}(?:-R\d{2,3})?(?:, )?)+)\)$`)
	ruleRange   = regexp.MustCompile(`R(\d{2,3})(?:-R(\d{2,3}))?`)
)

// Rules returns the rules in the order of the document.
func Rules() []Rule {
	list, about := rulesOf(rulesPage, page(rulesPage))
	for _, name := range morePages {
		_, more := rulesOf(name, page(name))
		for rule, sections := range more {
			about[rule] = append(about[rule], sections...)
		}
	}
	for i := range list {
		list[i].Sections = about[list[i].Name]
	}
	return list
}

// rulesOf returns the rules of a document in its order, and the sections that are about a rule.
func rulesOf(name, text string) (list []Rule, about map[string][]Section) {
	about = map[string][]Section{}
	chapter := ""
	at := heading.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		title, body := text[m[4]:m[5]], strings.TrimSpace(text[m[1]:end])
		if m[3]-m[2] == len("##") {
			chapter = title
		}
		if r := ruleHeading.FindStringSubmatch(title); r != nil && r[1] == r[2] {
			list = append(list, newRule("R"+r[1], r[3], chapter, body))
			continue
		}
		for _, rule := range rulesNamed(title) {
			about[rule] = append(about[rule], Section{Page: name, Title: title, Text: body})
		}
	}
	return list, about
}

// newRule returns the rule of a section, whose last paragraph names its tests.
func newRule(name, title, chapter, body string) Rule {
	r := Rule{Name: name, Title: title, Chapter: chapter, Tests: []string{}}
	var text []string
	for p := range strings.SplitSeq(body, "\n\n") {
		if !testsLine.MatchString(p) {
			text = append(text, p)
			continue
		}
		for _, m := range testName.FindAllStringSubmatch(p, -1) {
			r.Tests = append(r.Tests, m[1]+m[2])
		}
	}
	r.Text = strings.Join(text, "\n\n")
	return r
}

// rulesNamed returns the rules that a title ends with, in parentheses, and those of ranges each.
func rulesNamed(title string) (names []string) {
	in := namedRules.FindStringSubmatch(title)
	if in == nil {
		return nil
	}
	for _, m := range ruleRange.FindAllStringSubmatch(in[1], -1) {
		first, _ := strconv.Atoi(m[1])
		last, err := strconv.Atoi(m[2])
		if err != nil {
			last = first
		}
		for n := first; n <= last; n++ {
			names = append(names, fmt.Sprintf("R%02d", n))
		}
	}
	return names
}
