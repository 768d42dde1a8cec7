// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch has what those have in common that show a switch as it changes, the live page,
// gleam top and gleam group tree: rates between two of its answers, and which members matter.
package watch

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Lately is the time for which an eviction, or a port that was down, is shown as something to look
// at.
const Lately = 10 * time.Minute

// Evicted returns those of a group's former members that the switch has evicted lately: the others
// have left, or were removed by the master.
func Evicted(former []api.FormerMember, now time.Time) (list []api.FormerMember) {
	for i := range former {
		if m := &former[i]; m.PSN != nil && now.Sub(m.Time) <= Lately {
			list = append(list, *m)
		}
	}
	return list
}

// PortOf returns the name of the port that leads to a member; "" if that is not known.
func PortOf(g *api.Group, ip netip.Addr) string {
	for i := range g.Members {
		if g.Members[i].IP == ip {
			return g.Members[i].Port
		}
	}
	return ""
}

// PortState returns the state of a port in a word: up, down, blocked by its bridge, unheard, or what it
// is without an interface.
func PortState(p *api.Port) string {
	switch {
	case p.State != "" && p.State != api.PortOpen:
		return p.State
	case p.Blocked:
		return "blocked"
	case p.Unheard != "":
		return "unheard"
	case p.Up:
		return "up"
	}
	return "down"
}

// WasDown reports whether a port went down lately.
func WasDown(p *api.Port, now time.Time) bool {
	return p.LastDown != nil && now.Sub(*p.LastDown) <= Lately
}

// Rank orders the members of a group by how much an operator wants to see them: the one that
// the group waits for, those with a fault, the source, the others.
func Rank(m *api.Member, g *api.Group) int {
	switch {
	case m.IP == g.WaitsFor:
		return 3
	case !m.Live || m.Diagnosis != "":
		return 2
	case m.Role == "source":
		return 1
	}
	return 0
}
