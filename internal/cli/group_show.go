// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

func groupShowCommand(env *Env) *cobra.Command {
	var out output
	var gone bool
	c := &cobra.Command{
		Use:   "show IP",
		Short: "One group: what each member has, and which one the group's ACK waits for",
		Args:  oneGroup, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			ip := netip.MustParseAddr(args[0]) // oneGroup has parsed it
			ask := env.client().Group
			if gone {
				ask = env.endedGroup
			}
			g, err := ask(c.Context(), ip)
			if err != nil {
				return err
			}
			return out.print(env.Stdout, g, func(w io.Writer) {
				slices.SortStableFunc(g.Members, func(a, b api.Member) int { return a.IP.Compare(b.IP) })
				groupSummary(w, g)
				fmt.Fprintln(w)
				memberTable(w, g)
				costTable(w, g)
				if slices.ContainsFunc(g.Members, func(m api.Member) bool { return m.Diagnosis != "" }) {
					fmt.Fprintln(w)
					diagnosisTable(w, g)
				}
				if len(g.Former) > 0 {
					fmt.Fprintln(w)
					formerTable(w, g)
				}
			})
		},
	}
	out.addTo(c)
	c.Flags().BoolVar(&gone, "ended", false, "the last group of this address that is no more, as it was in the end")
	return c
}

// endedGroup returns the last group of an address that is no more.
func (e *Env) endedGroup(ctx context.Context, ip netip.Addr) (*api.Group, error) {
	gs, err := e.client().EndedGroups(ctx)
	if err != nil {
		return nil, err
	}
	for i := len(gs) - 1; i >= 0; i-- {
		if gs[i].IP == ip {
			return &gs[i], nil
		}
	}
	return nil, fmt.Errorf("no group %s has ended lately: `gleam group list --ended` has those that are remembered, gleam events tells more", ip)
}

// repliesText says what becomes of the data that dialled listeners send.
var repliesText = map[string]string{
	api.RepliesRefuse: "refuse: data of listeners gets a NAK",
	api.RepliesSource: "source: any member may send, in turns",
	api.RepliesLeader: "leader: data of the first listener goes to the program that has connected, that of the others is acknowledged and dropped",
}

func groupSummary(w io.Writer, g *api.Group) {
	row := func(key, format string, args ...any) { fmt.Fprintf(w, key+"\t"+format+"\n", args...) }
	row("group", "%s", g.IP)
	row("QPN", "%s", number24(g.QPN))
	row("path MTU", "%d bytes", g.PMTU)
	row("policy", "%s%s", g.Policy, limits(g))
	if g.Dialled.IsValid() {
		row("dialled", "%s: hosts know the group by this address", g.Dialled)
	}
	if g.Replies != "" {
		row("replies", "%s", repliesText[g.Replies])
	}
	if g.LeaseLeft > 0 || g.Master != "" {
		row("registered", "by %s from %s%s", g.Origin, text(g.Master), underKey(g))
	} else {
		row("registered", "by %s", g.Origin)
	}
	if g.LeaseLeft > 0 {
		row("epoch", "%d, its lease ends in %s", g.Epoch, lease(g.LeaseLeft))
	} else {
		row("epoch", "%d", g.Epoch)
	}
	if g.Ended != nil {
		row("ended", "%s, %s; what follows was its last state", g.Ended.Reason, localTime(g.Ended.Time))
	}
	row("state", "%s", g.State)
	if g.Failure != "" {
		row("failed", "%s", g.Failure)
	}
	if g.MTUText != "" {
		row("too long", "%s", g.MTUText)
	}
	if g.IsolationText != "" {
		row("isolated", "%s", g.IsolationText)
	}
	row("source", "%s", addrText(g.Source))
	if g.Source.IsValid() {
		row("acknowledged", "%s by every live receiver", number24(g.AckPSN))
		row("next PSN", "%s, %d packets unacknowledged", number24(g.NextPSN), g.Unacknowledged())
		row("waits for", "%s", placeText(g, g.WaitsFor))
		if g.StallSeconds > 0 {
			row("stalled", "for %v", seconds(g.StallSeconds).Round(100*time.Millisecond))
		}
		if g.SlowedBy.IsValid() {
			row("slowed by", "%s: %s", placeText(g, g.SlowedBy), text(g.SlowCause))
		}
	}
	row("data packets", "%d in, %d copies out%s", g.Counters.DataIn-g.Counters.Repeated, g.Counters.Copies, repeated(&g.Counters))
	row("payload", "%s", payload(float64(g.Counters.GoodBytes)))
	row("feedback", "%d in, %d out", g.Counters.FeedbackIn, g.Counters.FeedbackOut)
	if len(g.Normal) > 0 {
		row(normalTitle, "%s", countTable(g.Normal))
	}
	if len(g.Drops) > 0 {
		row(dropsTitle, "%s", countTable(g.Drops))
	}
	fastPathRows(row, g)
	r := g.Repair
	if r == nil {
		row("repair", "off")
		return
	}
	row("repair", "%d NAKs and RNR NAKs answered, %d packets sent again, %d probes", r.NAKs, r.Copies, r.Probes)
	row("repair store", "%d of %d KiB, at most %d; %d packets not retained", r.Bytes>>10, r.LimitBytes>>10, r.MaxRetainedBytes>>10, r.NotRetained)
}

// repeated says how many packets the source has sent again.
func repeated(c *api.Counters) string {
	if c.Repeated == 0 {
		return ""
	}
	return fmt.Sprintf("; the source has repeated %d more", c.Repeated)
}

// underKey names the key that a group belongs to, by its id.
func underKey(g *api.Group) string {
	if g.Key == 0 {
		return ""
	}
	return fmt.Sprintf(" under key %d", g.Key)
}

// limits shows the times for which a group waits for a member.
func limits(g *api.Group) string {
	var s string
	if g.DeadAfterMS > 0 {
		s += fmt.Sprintf(", dead after %v", time.Duration(g.DeadAfterMS)*time.Millisecond)
	}
	if g.LagPSNs > 0 {
		s += fmt.Sprintf(", at most %d packets behind", g.LagPSNs)
	}
	if g.LagMS > 0 {
		s += fmt.Sprintf(", at most %v behind", time.Duration(g.LagMS)*time.Millisecond)
	}
	return s
}

// placeText shows a member with the port that leads to it.
func placeText(g *api.Group, ip netip.Addr) string {
	if port := watch.PortOf(g, ip); port != "" {
		return addrText(ip) + " at port " + port
	}
	return addrText(ip)
}

// diagnosisTable lists known problems of members.
func diagnosisTable(w io.Writer, g *api.Group) {
	fmt.Fprintln(w, "MEMBER\tLIKELY WRONG")
	for i := range g.Members {
		if m := &g.Members[i]; m.Diagnosis != "" {
			fmt.Fprintf(w, "%s\t%s\n", m.IP, m.Diagnosis)
		}
	}
}

// countTable shows numbers by name in one line.
func countTable(m map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(list, ", ")
}

// formerTable lists former members, with the reasons.
func formerTable(w io.Writer, g *api.Group) {
	fmt.Fprintln(w, "FORMER MEMBER\tQPN\tPORT\tHAD ALL UP TO\tREASON\tTIME")
	for i := range g.Former {
		f := &g.Former[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.IP, number24(f.QPN), text(f.Port), optional24(f.PSN), f.Reason, localTime(f.Time))
	}
}

func memberTable(w io.Writer, g *api.Group) {
	fmt.Fprintln(w, "MEMBER\tROLE\tLIVE\tQPN\tACKED\tLAG\tPENDING\tPORT\tMAC\tVLAN\tWINDOW\tAWAITED")
	for i := range g.Members {
		m := &g.Members[i]
		acked, lag, holds := "-", "-", "-"
		if g.Source.IsValid() && m.IP != g.Source {
			acked, lag = number24(m.AckPSN), fmt.Sprint(m.Lag)
		}
		if m.IP == g.WaitsFor {
			holds = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			m.IP, m.Role, yesNo(m.Live), number24(m.QPN), acked, lag, text(m.Pending), text(m.Port), text(m.MAC),
			vlan(m.VLAN), yesNo(m.Window), holds)
	}
}
