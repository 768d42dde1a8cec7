// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/gleam-rdma/gleam/internal/cli/terminal"
)

// dispensable are the columns that a terminal which is too narrow does not get, the first
// ones first. Others follow, from the right. The first and the last column, which says why, stay.
var dispensable = []string{"ORIGIN", "POLICY", "PATH MTU", "LEASE", "QPN", "MAC", "VLAN", "DRIVER", "WORKER", "QUEUES", "SWITCH", "SESSION", "NEXT", "PSN", "ACK", "MEMBERS", "PAYLOAD", "PROBES", "RTT P50"}

// columnsOf returns the width of the terminal that w is; 0 if it is none.
func columnsOf(w io.Writer) int {
	if t, ok := terminal.Raw(w).(interface{ Columns() int }); ok {
		return t.Columns()
	}
	f, ok := terminal.Of(w)
	if !ok {
		return 0
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// block is a part of a table: a line with headings and those below it with as many cells.
type block [][]string

// writeTable aligns the columns of text, which are separated by tabs. Columns that do not
// fit into width are left out, and named below; 0 is any width.
func writeTable(w io.Writer, text string, width int) error {
	aligned := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	put := func(lines block) {
		for _, l := range lines {
			fmt.Fprintln(aligned, strings.Join(l, "\t"))
		}
	}
	var lines block
	for l := range strings.Lines(text) {
		lines = append(lines, strings.Split(strings.TrimSuffix(l, "\n"), "\t"))
	}
	for len(lines) > 0 {
		n := blockLen(lines)
		b := lines[:n]
		lines = lines[n:]
		left := b.fit(width)
		put(b)
		if len(left) > 0 {
			// The note has no cells, so that it ends the columns.
			fmt.Fprintf(aligned, "(left out for %d columns: %s; -o wide has all)\n", width, strings.Join(left, ", "))
		}
	}
	return aligned.Flush()
}

// blockLen returns the number of lines of the block that lines begin with; 1 for a line that
// is no heading.
func blockLen(lines block) int {
	if len(lines[0]) < 3 || !isHeading(lines[0]) {
		return 1
	}
	n := 1
	for n < len(lines) && len(lines[n]) == len(lines[0]) && !isHeading(lines[n]) {
		n++
	}
	return n
}

// isHeading tells whether a line has headings only: words without small letters.
func isHeading(cells []string) bool {
	for _, c := range cells {
		if c != strings.ToUpper(c) || !strings.ContainsFunc(c, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
			return false
		}
	}
	return true
}

// longText is the width of a last column of sentences, which a terminal wraps.
const longText = 12

// width returns the width of the aligned block.
func (b block) width() int {
	total := 0
	for i := range b[0] {
		w := 0
		for _, l := range b {
			w = max(w, utf8.RuneCountInString(l[i]))
		}
		if i == len(b[0])-1 && slices.ContainsFunc(b[1:], func(l []string) bool { return strings.Contains(l[i], " ") }) {
			w = min(w, max(longText, utf8.RuneCountInString(b[0][i])))
		}
		total += w
		if i > 0 {
			total += 2
		}
	}
	return total
}

// fit removes columns of b, but the first and the last one, until it fits into width, and
// returns their headings.
func (b block) fit(width int) (left []string) {
	if width <= 0 || !isHeading(b[0]) {
		return nil
	}
	for len(b[0]) > 2 && b.width() > width {
		at := len(b[0]) - 2
		for _, name := range dispensable {
			if i := slices.Index(b[0][1:len(b[0])-1], name); i >= 0 {
				at = i + 1
				break
			}
		}
		left = append(left, b[0][at])
		for i := range b {
			b[i] = slices.Delete(b[i], at, at+1)
		}
	}
	return left
}
