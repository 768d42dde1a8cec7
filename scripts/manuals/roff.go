// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// page is a manual page in the macros of man(7).
type page struct {
	strings.Builder
}

// stamp is what all pages of a build have in their header and footer.
type stamp struct{ version, date string }

// newPage begins the page name(section), about what title says.
func newPage(s stamp, name string, section int, title string) *page {
	p := new(page)
	fmt.Fprintf(p, ".TH %q %d %q %q %q\n", strings.ToUpper(name), section, s.date, "Gleam "+s.version, "Gleam")
	p.heading("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", escape(name), escape(title))
	return p
}

func (p *page) heading(text string) { fmt.Fprintf(p, ".SH %s\n", escape(text)) }

// section is a heading within a section.
func (p *page) section(text string) { fmt.Fprintf(p, ".SS %s\n", escape(text)) }

// item begins an entry of a list: what it explains, in one line each.
func (p *page) item(terms ...string) {
	for i, term := range terms {
		macro := ".TQ"
		if i == 0 {
			macro = ".TP"
		}
		fmt.Fprintf(p, "%s\n%s\n", macro, term)
	}
}

// paragraph adds a line that is roff already.
func (p *page) paragraph(line string) { fmt.Fprintf(p, ".PP\n%s\n", line) }

// text adds paragraphs, which empty lines part. Lines that are indented stay as they are.
// One that is within an item begins without a macro, which would end the item.
func (p *page) text(text string, within bool) {
	gap, again := ".PP\n", ".PP\n"
	if within {
		gap, again = "", ".IP\n"
	}
	literal := false
	end := func() {
		if literal {
			p.WriteString(".EE\n.RE\n")
		}
		literal = false
	}
	if text == "" {
		return
	}
	for _, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			end()
			gap = again
			continue
		}
		if indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t"); indented != literal {
			if end(); indented {
				if within {
					p.WriteString(".RS\n.EX\n")
				} else {
					p.WriteString(".RS 4\n.EX\n")
				}
				literal, gap = true, ""
			} else if gap == "" {
				gap = again
			}
		}
		p.WriteString(gap)
		gap = ""
		p.WriteString(escape(strings.TrimSpace(line)) + "\n")
	}
	end()
}

// bold is text that is typed as it stands.
func bold(text string) string { return `\fB` + escape(text) + `\fR` }

// italic is text that stands for something else.
func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// see is a reference to another page.
func see(name string, section int) string { return fmt.Sprintf("%s(%d)", bold(name), section) }

// escape has roff print text as it is.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
