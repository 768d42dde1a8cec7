// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli/terminal"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// column is a column of a table.
type column struct {
	title string
	right bool // numbers
	// least is the number by which columns are left out where all do not fit: the highest first.
	least int
}

// cell is a value as it is shown, and as it is sorted: by number, then by text.
type cell struct {
	text   string
	number float64
}

func word(s string) cell { return cell{text: cmp.Or(s, "-")} }

func count(n float64) cell { return cell{scaled(n), n} }

// scaled shows a number in five characters or less.
func scaled(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		switch {
		case n < 10 && unit != "" || n < 10 && n != float64(int(n)):
			return fmt.Sprintf("%.1f%s", n, unit)
		case n < 999.5:
			return fmt.Sprintf("%.0f%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0fT", n)
}

// seconds shows a time.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond).String()
}

// row is a line of a table.
type row struct {
	key   string // the same in the next sample
	cells []cell
	bad   bool // true: it wants to be looked at
}

// table is what a view shows of a sample.
type table struct {
	columns []column
	rows    []row
}

// Views of a sample.
const (
	viewGroups  = "groups"
	viewMembers = "members" // the members of one group
	viewMember  = "member"
	viewPorts   = "ports"
)

var groupColumns = []column{
	{"GROUP", false, 0}, {"STATE", false, 0}, {"SOURCE", false, 5}, {"IN/s", true, 0}, {"bit/s", true, 1}, {"OUT/s", true, 3},
	{"REPAIR/s", true, 1}, {"LAG", true, 0}, {"WAITS FOR", false, 0}, {"PATH", false, 2}, {"WORKER", true, 6},
}

// groupTable lists the groups.
func groupTable(s *Sample) *table {
	t := &table{columns: groupColumns}
	for i := range s.Groups {
		g := &s.Groups[i]
		state, bad := g.State, g.State == "failed" || g.MTUText != "" || g.IsolationText != ""
		if g.StallSeconds > 0 {
			state, bad = fmt.Sprintf("stall %.0fs", g.StallSeconds), true
		} else if g.SlowedBy.IsValid() {
			state, bad = "slow", true
		}
		bad = bad || len(watch.Evicted(g.Former, s.Time)) > 0
		for k := range g.Members {
			bad = bad || !g.Members[k].Live || g.Members[k].Diagnosis != ""
		}
		r := g.Rates
		if r == nil {
			r = &watch.Rates{}
		}
		path := "slow"
		if g.FastPath != nil {
			path = g.FastPath.Way
		}
		t.rows = append(t.rows, row{g.IP.String(), []cell{
			{text: g.IP.String(), number: order(g.IP)}, word(state), word(addr(g.Source)), count(r.DataIn), count(g.BitRate), count(r.Copies),
			count(r.Repairs), count(float64(lag(&g.Group))), word(waits(&g.Group)), word(path), count(float64(g.Worker)),
		}, bad})
	}
	return t
}

// order has addresses in their order as numbers, IPv4 before IPv6.
func order(ip netip.Addr) (n float64) {
	for _, b := range ip.AsSlice() {
		n = n*256 + float64(b)
	}
	return n
}

func addr(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// waits is whom a group's ACK waits for, while something is outstanding: nearly always, or else now.
func waits(g *api.Group) string {
	if g.SlowedBy.IsValid() {
		return addr(g.SlowedBy)
	}
	if g.Unacknowledged() == 0 {
		return ""
	}
	return addr(g.WaitsFor)
}

// lag is the longest lag of a group's receivers.
func lag(g *api.Group) (most int) {
	if !g.Source.IsValid() {
		return 0
	}
	for i := range g.Members {
		if m := &g.Members[i]; m.IP != g.Source {
			most = max(most, m.Lag)
		}
	}
	return most
}

var memberColumns = []column{
	{"MEMBER", false, 0}, {"ROLE", false, 0}, {"LIVE", false, 0}, {"ACKED", false, 2}, {"ACK/s", true, 0}, {"LAG", true, 0}, {"PENDING", false, 1},
	{"PORT", false, 1}, {"AWAITED", false, 0}, {"NAKS", true, 3}, {"RNR", true, 3}, {"REPAIRED", true, 3}, {"WAITED", true, 3}, {"QPN", false, 4}, {"MAC", false, 5},
}

// memberTable lists the members of a group by address.
func memberTable(s *Sample, group string) *table {
	t := &table{columns: memberColumns}
	g := groupOf(s, group)
	if g == nil {
		return t
	}
	for i := range g.Members {
		m := &g.Members[i]
		live, held, acked, behind, speed := "yes", "", word(""), word(""), word("")
		if !m.Live {
			live = "no"
		}
		if m.IP.String() == waits(&g.Group) {
			held = "yes"
		}
		if g.Source.IsValid() && m.IP != g.Source {
			acked, behind = cell{fmt.Sprintf("0x%06x", uint32(m.AckPSN)), float64(m.AckPSN)}, count(float64(m.Lag))
			if g.Rates != nil {
				speed = count(g.Rates.Progress[m.IP.String()])
			}
		}
		at := m.Port
		if m.Switch != "" {
			at = "by " + m.Port
		}
		naks, rnr, again, waited := word(""), word(""), word(""), word("")
		if c := m.Cost; c != nil {
			naks, rnr, again, waited = count(float64(c.NAKs)), count(float64(c.RNRNAKs)), count(float64(c.Repaired)), cell{seconds(c.Waited), c.Waited}
		}
		t.rows = append(t.rows, row{m.IP.String(), []cell{
			{text: m.IP.String(), number: order(m.IP)}, word(m.Role), word(live), acked, speed, behind, word(m.Pending), word(at), word(held), naks, rnr, again, waited,
			word(fmt.Sprintf("0x%06x", uint32(m.QPN))), word(m.MAC),
		}, !m.Live || m.Diagnosis != "" || held != "" && (g.StallSeconds > 0 || g.SlowedBy.IsValid())})
	}
	t.sort(0, false)
	return t
}

var portColumns = []column{
	{"PORT", false, 0}, {"STATE", false, 0}, {"DOWNS", true, 1}, {"RX/s", true, 0}, {"TX/s", true, 0}, {"DROP/s", true, 0}, {"DROPPED", true, 2}, {"QUEUE", true, 1}, {"RATE", true, 4}, {"XDP", false, 1}, {"DRIVER", false, 3}, {"MTU", true, 3}, {"PATH", false, 2},
}

// portTable lists the ports.
func portTable(s *Sample) *table {
	t := &table{columns: portColumns}
	for i := range s.Ports {
		p := &s.Ports[i]
		state := watch.PortState(&p.Port)
		path := "slow"
		if p.FastPath != nil && p.FastPath.Used {
			path = "fast"
		}
		t.rows = append(t.rows, row{p.Name, []cell{
			word(p.Name), word(state), count(float64(p.Downs)), count(p.RxRate), count(p.TxRate), count(p.DropRate), count(float64(p.Egress.Dropped)), count(float64(p.Egress.Bytes)),
			{p.Rate.String(), float64(p.Rate)}, word(p.XDPMode), word(p.Driver), cell{fmt.Sprint(p.MTU), float64(p.MTU)}, word(path),
		}, state != "up" && state != "blocked" || p.DropRate > 0 || watch.WasDown(&p.Port, s.Time)})
	}
	return t
}

// filter leaves the rows that have a text in one of their cells.
func (t *table) filter(text string) {
	if text == "" {
		return
	}
	t.rows = slices.DeleteFunc(t.rows, func(r row) bool {
		return !slices.ContainsFunc(r.cells, func(c cell) bool { return strings.Contains(strings.ToLower(c.text), strings.ToLower(text)) })
	})
}

// sort orders the rows by a column: numbers from the highest down, unless it is turned, and
// texts from the first on.
func (t *table) sort(by int, turned bool) {
	if by < 0 || by >= len(t.columns) {
		return
	}
	way := 1
	if t.columns[by].right != turned {
		way = -1
	}
	slices.SortStableFunc(t.rows, func(a, b row) int {
		x, y := a.cells[by], b.cells[by]
		return way * cmp.Or(cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text))
	})
}

// fit returns the columns that fit a width, and the titles of those that are left out. A width
// of 0 has no end.
func (t *table) fit(width int) (shown []int, left []string) {
	widths := t.widths()
	for least := 9; ; least-- {
		sum := 0
		shown, left = nil, nil
		for i, c := range t.columns {
			if c.least >= least && c.least > 0 {
				left = append(left, c.title)
				continue
			}
			shown = append(shown, i)
			sum += widths[i] + 2
		}
		if width == 0 || sum-2 <= width || least == 0 {
			return shown, left
		}
	}
}

func (t *table) widths() []int {
	w := make([]int, len(t.columns))
	for i, c := range t.columns {
		w[i] = len(c.title)
		for _, r := range t.rows {
			w[i] = max(w[i], utf8.RuneCountInString(r.cells[i].text))
		}
	}
	return w
}

// lines returns the title and the rows as text.
func (t *table) lines(width int) (title string, rows []string, left []string) {
	shown, left := t.fit(width)
	widths := t.widths()
	line := func(text func(i int) string) string {
		var b strings.Builder
		for n, i := range shown {
			if n > 0 {
				b.WriteString("  ")
			}
			if s, space := text(i), strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text(i)))); t.columns[i].right {
				b.WriteString(space + s)
			} else {
				b.WriteString(s + space)
			}
		}
		return cut(strings.TrimRight(b.String(), " "), width)
	}
	title = line(func(i int) string { return t.columns[i].title })
	for _, r := range t.rows {
		rows = append(rows, line(func(i int) string { return r.cells[i].text }))
	}
	return title, rows, left
}

// cut shortens a line to a width. All that others have named comes to the screen by it.
func cut(s string, width int) string {
	s = terminal.Clean(s)
	if r := []rune(s); width > 0 && len(r) > width {
		return string(r[:width])
	}
	return s
}
