// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// Styles: attributes stay where there are no colours (NO_COLOR), and words say the same.
const (
	bold    = "\x1b[1m"
	reverse = "\x1b[7m"
	red     = "\x1b[31m"
	plain   = "\x1b[0m"
)

// keys is the last line of the screen.
const keys = "q quit  ? help  tab groups/ports  enter open  esc back  s sort  / filter"

var helpText = []string{
	"up, down, j, k      move           pgup, pgdown, home, end",
	"enter, right        members of a group, then one member; esc, left  back",
	"g, p, tab           groups, ports",
	"s, r                sort by the next column; turn the order",
	"/                   filter rows by a text in any cell; esc drops it",
	"space               stop and go on",
	"q, ctrl+c           quit",
	"",
	"* before a row      it wants to be looked at: failed, stalled, dead, dropping",
	"IN, OUT, REPAIR     packets a second: from the source, copies, sent again here",
	"LAG                 packets that the slowest receiver has not acknowledged",
	"WAITS FOR, AWAITED  the member whose acknowledgement the group waits for",
	"REPAIRED, WAITED    packets sent to it again; time waited for it beyond others",
	"PATH                fast: XDP programs make the copies; slow: a worker does",
}

// View is the screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen, v.WindowTitle = true, "gleam top"
	return v
}

// screen returns its lines, with styles.
func (m *model) screen() []string {
	lines := m.head()
	switch {
	case m.help:
		for _, l := range helpText {
			lines = append(lines, cut(l, m.width))
		}
	case m.sample == nil:
		lines = append(lines, "")
	case m.view == viewMember:
		lines = append(lines, memberLines(m.sample, m.group, m.member, m.width)...)
	default:
		lines = append(lines, m.body()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = lines[:m.height-1]
	foot := keys
	if m.editing || m.filter != "" {
		foot = "/" + m.filter
		if m.editing {
			foot += "_   enter keep, esc drop"
		}
	}
	return append(lines, cut(foot, m.width))
}

// head is what stands above the table.
func (m *model) head() []string {
	s := m.sample
	if s == nil {
		if m.err != nil {
			return []string{bold + "gleam top" + plain, cut(m.err.Error(), m.width)}
		}
		return []string{bold + "gleam top" + plain, "asking gleamd ..."}
	}
	state := s.Time.Format("15:04:05")
	if m.paused {
		state += " stopped"
	}
	lines := []string{bold + cut(fmt.Sprintf("gleam top  %s  gleamd %s  up %s", state, s.Version.Version, time.Duration(s.Stats.Uptime*float64(time.Second)).Round(time.Second)), m.width) + plain}
	lines = append(lines, cut(totals(s), m.width))
	if m.err != nil {
		lines = append(lines, red+cut("no answer: "+m.err.Error(), m.width)+plain)
	}
	what := m.view
	if m.view == viewMembers || m.view == viewMember {
		what = "group " + m.group
	}
	if m.view == viewMembers {
		if g := groupOf(s, m.group); g != nil {
			lines = append(lines, groupLines(g, m.sample.Time, m.width)...)
			what = "members"
		} else {
			what += " is no more"
		}
	}
	if by, ok := m.sorts[m.view]; ok && by >= 0 {
		if t := m.table(); by < len(t.columns) {
			what += ", by " + t.columns[by].title
			if m.turned {
				what += " turned"
			}
		}
	}
	return append(lines, cut("-- "+what+" "+strings.Repeat("-", m.width), m.width))
}

// totals is the switch in a line.
func totals(s *Sample) string {
	var in, out, rate, repairs float64
	stalled := 0
	for i := range s.Groups {
		g := &s.Groups[i]
		rate += g.BitRate
		if r := g.Rates; r != nil {
			in, out, repairs = in+r.DataIn, out+r.Copies, repairs+r.Repairs
		}
		if g.StallSeconds > 0 {
			stalled++
		}
	}
	line := fmt.Sprintf("%d groups, %d stalled  in %s/s, %sbit/s  out %s/s  repair %s/s", len(s.Groups), stalled, scaled(in), scaled(rate), scaled(out), scaled(repairs))
	return line + fmt.Sprintf("  free %d%%", 100*s.Stats.FramesFree/max(1, s.Stats.Frames))
}

// groupLines is a group in some lines.
func groupLines(g *Group, now time.Time, width int) []string {
	lines := []string{cut(fmt.Sprintf("group %s  %s  policy %s  source %s  path MTU %d", g.IP, g.State, g.Policy, word(addr(g.Source)).text, g.PMTU), width)}
	ack := fmt.Sprintf("acked 0x%06x  outstanding %d", uint32(g.AckPSN), g.Unacknowledged())
	if w := waits(&g.Group); w != "" {
		ack += "  waits for " + w
	}
	if g.StallSeconds > 0 {
		ack += fmt.Sprintf("  STALLS %.0f s", g.StallSeconds)
	}
	if g.SlowedBy.IsValid() {
		ack += "  SLOWED BY IT"
		if g.SlowCause != "" {
			ack += ": " + g.SlowCause
		}
	}
	lines = append(lines, cut(ack, width))
	for _, m := range watch.Evicted(g.Former, now) {
		lines = append(lines, cut(fmt.Sprintf("%s  %s at port %s was %s", m.Time.Local().Format(time.TimeOnly), m.IP, m.Port, m.Reason), width))
	}
	for _, text := range []string{g.Failure, g.MTUText, g.IsolationText} {
		if text != "" {
			lines = append(lines, cut(text, width))
		}
	}
	return lines
}

// memberLines is all that is known of a member.
func memberLines(s *Sample, group, ip string, width int) (lines []string) {
	g := groupOf(s, group)
	if g == nil {
		return nil
	}
	for i := range g.Members {
		m := &g.Members[i]
		if m.IP.String() != ip {
			continue
		}
		add := func(key, format string, args ...any) {
			lines = append(lines, cut(fmt.Sprintf("%-14s", key)+fmt.Sprintf(format, args...), width))
		}
		add("member", "%s, QPN 0x%06x, %s", m.IP, uint32(m.QPN), m.Role)
		add("live", "%v", m.Live)
		add("location", "port %s, MAC %s, VLAN %d, switch %s", m.Port, m.MAC, m.VLAN, word(m.Switch).text)
		if g.Source.IsValid() && m.IP != g.Source {
			add("acked", "0x%06x, %d behind", uint32(m.AckPSN), m.Lag)
			if g.Rates != nil {
				add("progress", "%s packets/s", scaled(g.Rates.Progress[ip]))
			}
		}
		add("pending", "%s", word(m.Pending).text)
		if m.Slow != "" {
			add("slow", "%s", m.Slow)
		}
		if c := m.Cost; c != nil {
			add("cost", "%d NAKs, %d RNR NAKs, %d packets sent again, %d probes", c.NAKs, c.RNRNAKs, c.Repaired, c.Probes)
			add("waited for", "%s beyond the others", seconds(c.Waited))
			if c.RTTp50 > 0 {
				add("round trip", "half below %s, 99 %% below %s", seconds(c.RTTp50), seconds(c.RTTp99))
			}
		}
		if ip == waits(&g.Group) {
			switch {
			case g.SlowedBy.IsValid():
				add("holds", "the group's ACK, alone, nearly always: it slows the group down")
			default:
				add("holds", "the group's ACK, for %.0f s without progress", g.StallSeconds)
			}
		}
		if m.Diagnosis != "" {
			for n, part := range wrapped(m.Diagnosis, max(20, width-14)) {
				key := ""
				if n == 0 {
					key = "likely wrong"
				}
				add(key, "%s", part)
			}
		}
		return lines
	}
	return []string{"the member " + ip + " has gone"}
}

// wrapped divides a text into lines of a width.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}
