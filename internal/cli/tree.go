// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/api"
)

// groupTree is a group's tree as its switches describe it.
type groupTree struct {
	Group    netip.Addr    `json:"group"`
	Source   netip.Addr    `json:"source,omitzero"`
	Root     string        `json:"root,omitempty"` // ID of the switch that the group was registered at
	Switches []*treeSwitch `json:"switches"`       // the one that was asked first, and then as they were found
	Hops     []hop         `json:"hops"`           // hops in the direction of data, from the source on

	start string // ID of the switch that Hops begin at
}

// hop is one way of the data: from a switch to another one, or to a member.
type hop struct {
	From   string     `json:"from"`             // ID of a switch
	To     string     `json:"to,omitempty"`     // ID of the next switch
	Member netip.Addr `json:"member,omitzero"`  // the member, in the place of To
	Port   string     `json:"port,omitempty"`   // the port of From
	State  string     `json:"state,omitempty"`  // the state of the adjacency, for a switch
	Reason string     `json:"reason,omitempty"` // why it is down
	Role   string     `json:"role,omitempty"`   // the role of the member
	Live   bool       `json:"live"`
	AckPSN api.PSN    `json:"ack_psn"`
	Lag    int        `json:"lag"`
	// Members and LiveMembers are those behind a switch.
	Members     int       `json:"members,omitempty"`
	LiveMembers int       `json:"live_members,omitempty"`
	Pending     string    `json:"pending,omitempty"`
	Awaited     bool      `json:"awaited"`            // the acknowledgement of From waits for it
	PacketRate  float64   `json:"packets_per_second"` // acknowledged
	ByteRate    float64   `json:"bytes_per_second"`   // the rate if each packet has the path MTU
	Slow        string    `json:"slow,omitempty"`     // cause for which a member costs the group time
	Cost        *api.Cost `json:"cost,omitempty"`     // the cost of the member, or of those behind the switch together
	Unknown     bool      `json:"unknown,omitempty"`  // From has not answered: the rest is what To says
}

// newGroupTree orders what the switches have said.
func newGroupTree(ip netip.Addr, list []*treeSwitch) *groupTree {
	t := &groupTree{Group: ip, Switches: list, Hops: []hop{}}
	for _, s := range list {
		if s.Group == nil {
			continue
		}
		if !t.Source.IsValid() {
			t.Source = s.Group.Source
		}
		if s.Group.Tree != nil && s.Group.Tree.Parent == "" {
			t.Root = s.Switch
		}
	}
	t.start = t.first()
	seen := map[string]bool{t.start: true}
	t.follow(t.start, seen)
	return t
}

// find returns a switch; nil if there is none.
func (t *groupTree) find(id string) *treeSwitch {
	if i := slices.IndexFunc(t.Switches, func(s *treeSwitch) bool { return s.Switch == id }); i >= 0 {
		return t.Switches[i]
	}
	return nil
}

// first returns the switch where the data comes in: that of the source, as far as the
// switches that have answered lead there; without a source, the root.
func (t *groupTree) first() string {
	at := t.Switches[0].Switch
	if !t.Source.IsValid() {
		return cmp.Or(t.Root, at)
	}
	for range t.Switches {
		s := t.find(at)
		if s == nil || s.Group == nil || s.Group.Tree == nil {
			return at
		}
		i := slices.IndexFunc(s.Group.Tree.Legs, func(l api.TreeLeg) bool { return l.Source })
		if i < 0 {
			return at
		}
		if l := &s.Group.Tree.Legs[i]; t.find(l.Switch) != nil {
			at = l.Switch
		} else {
			return at
		}
	}
	return at // they lead in a circle
}

// follow appends the hops from a switch on.
func (t *groupTree) follow(from string, seen map[string]bool) {
	s := t.find(from)
	if s.Group == nil {
		t.guess(from, seen)
		return
	}
	g := s.Group
	for i := range g.Members {
		if m := &g.Members[i]; m.Switch == "" && m.Role != "source" {
			h := hop{
				From: from, Member: m.IP, Port: m.Port, Role: m.Role, Live: m.Live, AckPSN: m.AckPSN, Lag: m.Lag, Pending: m.Pending, Awaited: m.IP == g.WaitsFor,
				Slow: m.Slow, Cost: m.Cost,
			}
			t.append(s, m.IP.String(), h)
		}
	}
	if g.Tree == nil {
		return
	}
	for i := range g.Tree.Legs {
		l := &g.Tree.Legs[i]
		if seen[l.Switch] || t.find(l.Switch) == nil {
			continue
		}
		seen[l.Switch] = true
		h := hop{
			From: from, To: l.Switch, Port: l.Port, State: l.State, Reason: l.Reason, Live: l.Live > 0, AckPSN: l.AckPSN, Lag: l.Lag,
			Members: l.Members, LiveMembers: l.Live, Pending: l.Pending, Awaited: l.Awaited,
		}
		if k := slices.IndexFunc(g.Members, func(m api.Member) bool { return m.Switch == l.Switch && m.Cost != nil }); k >= 0 {
			h.Cost, h.Slow = g.Members[k].Cost, g.Members[k].Slow
		}
		t.append(s, l.Switch, h)
		t.follow(l.Switch, seen)
	}
}

// guess appends the hops from a switch that has not answered, to those next to it that have.
func (t *groupTree) guess(from string, seen map[string]bool) {
	for _, s := range t.Switches {
		if seen[s.Switch] || s.Group == nil || s.Group.Tree == nil {
			continue
		}
		if i := slices.IndexFunc(s.Group.Tree.Legs, func(l api.TreeLeg) bool { return l.Switch == from }); i >= 0 {
			seen[s.Switch] = true
			l := &s.Group.Tree.Legs[i]
			t.Hops = append(t.Hops, hop{From: from, To: s.Switch, State: l.State, Reason: l.Reason, Live: true, AckPSN: s.Group.AckPSN, Unknown: true})
			t.follow(s.Switch, seen)
		}
	}
}

// append appends a hop of s to who, with its rate.
func (t *groupTree) append(s *treeSwitch, who string, h hop) {
	if s.Rates != nil {
		h.PacketRate = s.Rates.Progress[who]
		h.ByteRate = h.PacketRate * float64(s.Group.PMTU)
	}
	t.Hops = append(t.Hops, h)
}

// below returns the hops from a switch: the members that need attention first, then switches.
func (t *groupTree) below(id string) (members, switches []*hop) {
	for i := range t.Hops {
		switch h := &t.Hops[i]; {
		case h.From != id:
		case h.To == "":
			members = append(members, h)
		default:
			switches = append(switches, h)
		}
	}
	slices.SortStableFunc(members, func(a, b *hop) int {
		return cmp.Or(-compareBool(a.Slow != "", b.Slow != ""), -compareBool(a.Awaited, b.Awaited), compareBool(a.Live, b.Live), -cmp.Compare(a.Lag, b.Lag), a.Member.Compare(b.Member))
	})
	return members, switches
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// rate shows packets a second, and bytes.
func rate(packets, bytes float64) string {
	return fmt.Sprintf("%.0f packets/s, %s/s", packets, payload(bytes))
}
