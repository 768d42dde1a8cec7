// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// checkGroups reports what gleamd knows to be wrong with groups and their members, and groups
// that stand still.
func checkGroups(r *Report, groups []api.Group, now time.Time) {
	if len(groups) == 0 {
		r.skip("groups", "there are no groups")
		return
	}
	var found []Finding
	for i := range groups {
		g := &groups[i]
		found = append(found, checkGroup(g)...)
		found = append(found, slowMembers(g)...)
		if g.StallSeconds == 0 {
			continue
		}
		stalled := time.Duration(g.StallSeconds * float64(time.Second))
		f := Finding{
			Severity: Error, Group: g.IP, Text: fmt.Sprintf("%d packets are outstanding, and none was acknowledged for %s", g.Unacknowledged(), stalled.Round(100*time.Millisecond)),
			Cost: "the source gets no completion", Remedy: "gleam group show " + g.IP.String() + " has what each member lacks",
		}
		if g.WaitsFor.IsValid() {
			f.Member, f.Port = g.WaitsFor, watch.PortOf(g, g.WaitsFor)
			f.Text += ": the group waits for this member"
			f.Remedy = fmt.Sprintf("see whether the host is up and its queue pair takes packets: ping %s; %s", g.WaitsFor, f.Remedy)
		}
		found = append(found, f)
	}
	for i := range groups {
		found = append(found, former(&groups[i], now)...)
	}
	r.add("groups", found...)
}

// slowMembers reports the members that cost a group time, each with its cause and the next step for
// that.
func slowMembers(g *api.Group) (found []Finding) {
	for i := range g.Members {
		m := &g.Members[i]
		if m.Slow == "" {
			continue
		}
		f := Finding{Severity: Warning, Group: g.IP, Member: m.IP, Port: m.Port, Cost: "the source and all other members wait for it"}
		text, remedy := slowText(m)
		what := "costs the group time"
		if m.Slow == api.SlowLoss { // named also while no message has waited for a repair
			what, f.Cost = "loses packets that the others get", "each has to be repaired; if it is the last of a message, the source and all other members wait for it"
		}
		f.Text = fmt.Sprintf("it %s: %s: %s", what, m.Slow, text)
		f.Remedy = remedy + "; gleam events says how much; with lag_psns or lag_ms, and policy evict, the group goes on without such a member"
		found = append(found, f)
	}
	return found
}

// slowText says what is known of a slow member, and what to look at next.
func slowText(m *api.Member) (text, remedy string) {
	c := m.Cost
	if c == nil {
		c = new(api.Cost)
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Microsecond) }
	switch m.Slow {
	case api.SlowLoss:
		return fmt.Sprintf("packets to it are lost (%d NAKs since it joined, %d packets sent again)", c.NAKs, c.Repaired),
			"see the drops and errors of the way to it: gleam port list, ethtool -S at its interface and at each switch between, its receive buffers, PFC or ECN"
	case api.SlowNotReady:
		return fmt.Sprintf("no receive posted (%d RNR NAKs since it joined)", c.RNRNAKs),
			"have its program post receives sooner, or more of them: see what it does between a completion and the next receive, and its CPU"
	case api.SlowNoAnswer:
		return fmt.Sprintf("it does not answer in time (asked %d times since it joined)", c.Probes),
			fmt.Sprintf("see whether the host is up, and its program runs: ping %s; a stopped or swapped process, a CPU that is busy with something else", m.IP)
	case api.SlowLink:
		return fmt.Sprintf("its link, or host, takes data slower than the source sends it (round trip %v, of 100 the longest %v)", seconds(c.RTTp50), seconds(c.RTTp99)),
			"see the rate of its link: ethtool at its interface, the rate of its port (gleam port list), what else uses it"
	}
	return fmt.Sprintf("its round trip is several times that of others (%v, of 100 the longest %v)", seconds(c.RTTp50), seconds(c.RTTp99)),
		fmt.Sprintf("see which way its packets take: traceroute %s; the source can send more messages ahead", m.IP)
}

// checkGroup reports what the switch says of a group.
func checkGroup(g *api.Group) (found []Finding) {
	add := func(f Finding) { f.Group = g.IP; found = append(found, f) }
	if g.State == "failed" {
		add(Finding{Severity: Error, Text: "the group has failed" + reason(g.Failure), Cost: "its source gets a fatal NAK, and no data is forwarded", Command: "gleam group delete " + g.IP.String(), Remedy: "its master registers it again; queue pairs are connected anew"})
	}
	if g.MTUText != "" {
		add(Finding{Severity: Error, Text: g.MTUText, Cost: "packets of full length do not reach all members, and the source gets no completion", Remedy: "raise the MTU of the port that it names, or register the group with a smaller path MTU"})
	}
	if g.IsolationText != "" {
		add(Finding{Severity: Warning, Text: g.IsolationText, Cost: "members there may receive, and not send", Remedy: "see the port's isolation in the bridge: bridge -d link show"})
	}
	for i := range g.Members {
		if m := &g.Members[i]; m.Diagnosis != "" {
			add(Finding{Severity: Error, Member: m.IP, Text: m.Diagnosis, Cost: "it does not get the group's data", Remedy: "gleam group show " + g.IP.String() + " and gleam events have more"})
		}
	}
	return found
}

// former reports members that the switch has removed lately.
func former(g *api.Group, now time.Time) (found []Finding) {
	for _, m := range watch.Evicted(g.Former, now) {
		found = append(found, Finding{
			Severity: Warning, Group: g.IP, Member: m.IP, Port: m.Port, Text: fmt.Sprintf("it was removed at %s: %s", m.Time.Local().Format("15:04:05"), m.Reason),
			Cost: "it gets nothing more of the group, and lacks what was sent since", Remedy: "see what was wrong with the host, and have it join again; gleam events has the order of things",
		})
	}
	return found
}

// checkSwitches reports links to other switches that are not up, and members behind them.
func checkSwitches(r *Report, t *api.Topology) {
	if t.Switch == "" {
		r.skip("switches", "it knows no other switches (no keys in the section switch)")
		return
	}
	var found []Finding
	for i := range t.Neighbours {
		if n := &t.Neighbours[i]; n.State != api.LinkUp {
			found = append(found, Finding{
				Severity: Error, Port: n.Port, Text: fmt.Sprintf("switch %s is down there for %s%s", n.Switch, time.Duration(n.Age*float64(time.Second)).Round(time.Second), reason(n.Reason)),
				Cost: "groups go other ways, or end if there is none", Remedy: "see the link, and gleamd at that switch; gleam topology has what was heard",
			})
		}
	}
	for i := range t.Links {
		if l := &t.Links[i]; l.State != api.LinkUp && l.LastDrop != "" {
			found = append(found, Finding{
				Severity: Warning, Port: l.Port, Text: fmt.Sprintf("a hello from %s has no effect: %s", l.LastDropMAC, l.LastDrop),
				Cost: "groups with members behind that switch cannot be registered", Remedy: "the switches need a key in common, and incarnations of their own (switch.keys, switch.id)",
			})
		}
	}
	r.add("switches", found...)
}
