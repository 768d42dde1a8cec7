// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// slowText names the member that slows a group down, with the cause, or the one that it stands still for.
func slowText(g *api.Group) string {
	switch {
	case g.SlowedBy.IsValid() && g.SlowCause != "":
		return g.SlowedBy.String() + ": " + g.SlowCause
	case g.SlowedBy.IsValid():
		return g.SlowedBy.String()
	case g.StallSeconds > 0 && g.WaitsFor.IsValid():
		return g.WaitsFor.String() + ": stalled"
	}
	return "-"
}

// costTable shows what each member has cost its group. It is empty if nothing is known.
func costTable(w io.Writer, g *api.Group) {
	if !slices.ContainsFunc(g.Members, func(m api.Member) bool { return m.Cost != nil }) {
		return
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, costTitles+"\tSLOW")
	seen := make(map[string]bool)
	for i := range g.Members {
		m := &g.Members[i]
		if m.Cost == nil {
			continue
		}
		if line := costLine(seen, m.IP, m.Switch, m.Cost); line != "" {
			fmt.Fprintf(w, "%s\t%s\n", line, text(m.Slow))
		}
	}
}

// traceCostTable shows what each member has cost the group of a trace during it.
func traceCostTable(w io.Writer, costs []api.TraceCost) {
	fmt.Fprintln(w)
	fmt.Fprintln(w, costTitles)
	seen := make(map[string]bool)
	for i := range costs {
		x := &costs[i]
		if line := costLine(seen, x.Member, x.Switch, &x.Cost); line != "" {
			fmt.Fprintln(w, line)
		}
	}
}

// costTitles are the titles of a costLine.
const costTitles = "MEMBER\tNAKS\tRNR\tREPAIRED\tPROBES\tRTT P50\tRTT P99\tWAITED"

// costLine is what a member has cost; "" if it shares that with a member behind the same switch, which is in
// seen.
func costLine(seen map[string]bool, ip netip.Addr, neighbour string, c *api.Cost) string {
	who := ip.String()
	if neighbour != "" {
		if seen[neighbour] {
			return ""
		}
		seen[neighbour], who = true, "switch "+neighbour
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s", who, c.NAKs, c.RNRNAKs, c.Repaired, c.Probes, brief(c.RTTp50), brief(c.RTTp99), brief(c.Waited))
}

// costWords says what a member has cost, as far as it has cost anything.
func costWords(c *api.Cost, slow string) (list []string) {
	if slow != "" {
		list = append(list, "SLOW: "+slow)
	}
	if c == nil {
		return list
	}
	for _, x := range []struct {
		n    uint64
		what string
	}{{c.NAKs, "NAKs"}, {c.RNRNAKs, "RNR NAKs"}, {c.Repaired, "repaired"}, {c.Probes, "probes"}} {
		if x.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if c.RTTp50 > 0 {
		list = append(list, fmt.Sprintf("RTT %s, p99 %s", brief(c.RTTp50), brief(c.RTTp99)))
	}
	if d := seconds(c.Waited); d >= time.Millisecond {
		list = append(list, "waited for "+brief(c.Waited))
	}
	return list
}

// brief shows a time with three digits at most; "-" for none.
func brief(s float64) string {
	d := seconds(s)
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// payload shows a number of bytes.
func payload(n float64) string {
	switch {
	case n < 1e3:
		return fmt.Sprintf("%.0f B", n)
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.1f kB", n/1e3)
}
