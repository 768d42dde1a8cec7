// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Widths of terminals from which on there is more to see, and of what is seen then.
const (
	sparkFrom   = 100 // sparklines beside rows
	besideFrom  = 150 // ports beside groups
	besideWidth = 58  // the width of the ports
	leastSpark  = 12
	mostSpark   = 40
	between     = " | "
)

// block is a table in a part of the screen: a title, and a line for each row that there is room for.
type block struct {
	title string
	rows  []blockRow
	left  []string // titles of columns without room
}

// blockRow is a line of a block, of the block's width.
type blockRow struct {
	text, style string
}

// block draws rows of a table from top on into width columns. cursor is the key of the row that keys are
// about; "": none. view names the trails of the rows.
func (m *model) block(t *table, view string, width, top, page int, cursor string) block {
	room := width - 2
	if m.width >= sparkFrom {
		room -= leastSpark + 2
	}
	title, rows, left := t.lines(room)
	b := block{left: left}
	used := utf8.RuneCountInString(title)
	for _, r := range rows {
		used = max(used, utf8.RuneCountInString(r))
	}
	spark := 0
	if m.width >= sparkFrom {
		spark = min(width-2-used-2, mostSpark)
	}
	line := func(text, right string) string {
		if spark > 0 {
			text += strings.Repeat(" ", used-utf8.RuneCountInString(text)+2) + right
		}
		return text
	}
	what := "RATE"
	if strings.HasPrefix(view, viewMembers) {
		what = "LAG"
	}
	b.title = pad("  "+line(title, what+" SO FAR"), width)
	for i := top; i < min(len(rows), top+page); i++ {
		mark, style := "  ", ""
		if t.rows[i].bad {
			mark, style = "* ", red
		}
		if cursor != "" && t.rows[i].key == cursor {
			style += reverse
		}
		text := line(rows[i], sparkline(m.trails[view+" "+t.rows[i].key], spark))
		b.rows = append(b.rows, blockRow{pad(mark+text, width), style})
	}
	return b
}

// pad makes a line as long as a width.
func pad(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// styled is a line with its style, without spaces at the end where there is none.
func (r blockRow) styled() string {
	if r.style == "" {
		return strings.TrimRight(r.text, " ")
	}
	return r.style + r.text + plain
}

// portsBeside draws the ports that fit beside groups; nil if the screen is too narrow.
func (m *model) portsBeside() *block {
	if m.view != viewGroups || m.width < besideFrom {
		return nil
	}
	t := portTable(m.sample)
	page := m.page()
	b := m.block(t, viewPorts, besideWidth, 0, page, "")
	if more := len(t.rows) - page; more > 0 && len(b.rows) > 0 {
		b.rows[len(b.rows)-1] = blockRow{text: pad(fmt.Sprintf("  and %d more: tab", more+1), besideWidth)}
	}
	return &b
}

// body is the table of a view, with the ports beside groups where there is room.
func (m *model) body() []string {
	t, page := m.table(), m.page()
	view, width := m.view, m.width
	if view == viewMembers {
		view += " " + m.group
	}
	beside := m.portsBeside()
	if beside != nil {
		width -= besideWidth + len(between)
	}
	b := m.block(t, view, width, m.top, page, cmp.Or(m.cursor, " "))
	if len(t.rows) == 0 {
		b.rows = append(b.rows, blockRow{text: pad("  none", width)})
	}
	if len(b.left) > 0 && len(b.rows) < page {
		b.rows = append(b.rows, blockRow{text: pad("  no room for: "+strings.Join(b.left, ", "), width)})
	}
	if beside == nil {
		lines := []string{bold + strings.TrimRight(b.title, " ") + plain}
		for _, r := range b.rows {
			lines = append(lines, r.styled())
		}
		return lines
	}
	lines := []string{bold + b.title + between + strings.TrimRight(beside.title, " ") + plain}
	for i := range max(len(b.rows), len(beside.rows)) {
		left, right := strings.Repeat(" ", width), ""
		if i < len(b.rows) {
			if r := b.rows[i]; r.style != "" {
				left = r.styled()
			} else {
				left = r.text
			}
		}
		if i < len(beside.rows) {
			right = beside.rows[i].styled()
		}
		lines = append(lines, left+between+right)
	}
	return lines
}
