// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io"
	"strings"
)

// columns is the width of a report; commands may be longer, as they are copied.
const columns = 80

// margin is the width of the column of severities and labels.
const margin = 9

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range r.Findings {
		r.Findings[i].write(&b)
	}
	var fine []string
	for _, c := range r.Checks {
		if c.State == OK {
			fine = append(fine, c.Check)
		}
	}
	if len(fine) > 0 {
		paragraph(&b, "ok", strings.Join(fine, ", "))
	}
	for _, c := range r.Checks {
		if c.State == Skipped {
			paragraph(&b, "skipped", c.Check+": "+c.Reason)
		}
	}
	fmt.Fprintf(&b, "%s, %s\n", number(r.Errors, "error"), number(r.Warnings, "warning"))
	_, err := io.WriteString(w, b.String())
	return err
}

func number(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// write writes a finding in some lines.
func (f *Finding) write(b *strings.Builder) {
	paragraph(b, strings.ToUpper(string(f.Severity)), f.where()+f.Text+" ["+f.Check+"]")
	indented(b, "costs", f.Cost)
	if f.Command != "" {
		at := ""
		if f.At != "" {
			at = f.At + ": "
		}
		fmt.Fprintf(b, "%-*s%-7s%s%s\n", margin, "", "repair", at, f.Command)
	}
	indented(b, "note", f.Remedy)
}

// where names what the finding is about.
func (f *Finding) where() (s string) {
	if f.Port != "" && !f.Member.IsValid() {
		s += "port " + f.Port + ": "
	}
	if f.Group.IsValid() {
		s += "group " + f.Group.String() + ": "
	}
	if f.Member.IsValid() {
		s += "member " + f.Member.String()
		if f.Port != "" {
			s += " at port " + f.Port
		}
		s += ": "
	}
	return s
}

func indented(b *strings.Builder, label, text string) {
	if text != "" {
		wrap(b, fmt.Sprintf("%-*s%-7s", margin, "", label), text)
	}
}

func paragraph(b *strings.Builder, label, text string) {
	wrap(b, fmt.Sprintf("%-*s", margin, label), text)
}

// wrap writes text in lines of at most columns, where words allow it, behind a first part that
// the following lines leave empty.
func wrap(b *strings.Builder, first, text string) {
	line := first
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len(line)+1+len(word) > columns {
			fmt.Fprintln(b, line)
			line, empty = strings.Repeat(" ", len(first)), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	fmt.Fprintln(b, line)
}
