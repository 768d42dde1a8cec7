// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Most that a sample has. A page with more could not be read.
const (
	maxGroups  = 256
	maxMembers = 4096 // of all groups
)

// stallTime is the time without progress, with packets outstanding, from which on a group
// stalls.
const stallTime = time.Second

// sample is what the page shows of one moment.
type sample struct {
	Time     time.Time     `json:"time"`
	Version  api.Version   `json:"version"`
	Groups   []group       `json:"groups"`
	LeftOut  int           `json:"groups_left_out,omitempty"`
	Ports    []api.Port    `json:"ports"`
	Topology *api.Topology `json:"topology"`
	Stats    *api.Stats    `json:"stats"`
}

// group is a group, with what its samples tell.
type group struct {
	api.Group
	StallSeconds   float64 `json:"stall_seconds,omitempty"` // for which acked has not moved, though packets are outstanding
	MembersLeftOut int     `json:"members_left_out,omitempty"`
}

// sample asks the switch.
func (s *sampler) sample(now time.Time) (*sample, error) {
	x := &sample{Time: now, Version: s.version}
	list, err := s.backend.Groups()
	if err != nil {
		return nil, err
	}
	if x.Ports, err = s.backend.Ports(); err != nil {
		return nil, err
	}
	if x.Topology, err = s.backend.Topology(); err != nil {
		return nil, err
	}
	if x.Stats, err = s.backend.Stats(); err != nil {
		return nil, err
	}
	x.Groups, x.LeftOut = s.bound(list, now)
	return x, nil
}

// bound returns the groups that a sample has: those that stall first, then those with
// outstanding packets, each with its most important members.
func (s *sampler) bound(list []api.Group, now time.Time) (kept []group, leftOut int) {
	next := make(stalls, len(list))
	for i := range list {
		g := group{Group: list[i]}
		g.StallSeconds = s.stalls.of(&list[i], now, next)
		kept = append(kept, g)
	}
	s.stalls = next
	if len(kept) > maxGroups {
		slices.SortStableFunc(kept, func(a, b group) int {
			return cmp.Or(cmp.Compare(b.StallSeconds, a.StallSeconds), cmp.Compare(b.Unacknowledged(), a.Unacknowledged()))
		})
		leftOut = len(kept) - maxGroups
		kept = kept[:maxGroups]
	}
	room := maxMembers
	for i := range kept {
		g := &kept[i]
		most := max(room/(len(kept)-i), 2)
		if g.MembersLeftOut = max(0, len(g.Members)-most); g.MembersLeftOut > 0 {
			g.Members = slices.SortedStableFunc(slices.Values(g.Members), func(a, b api.Member) int {
				return cmp.Or(cmp.Compare(rank(&b, &g.Group), rank(&a, &g.Group)), cmp.Compare(b.Lag, a.Lag))
			})[:most]
		}
		room = max(0, room-len(g.Members))
	}
	return kept, leftOut
}

// rank orders members by how much an operator wants to see them.
func rank(m *api.Member, g *api.Group) int {
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

// stalls has, for each group with outstanding packets, since when acked is where it is.
type stalls map[groupEpoch]stall

type groupEpoch struct {
	ip    netip.Addr
	epoch uint64
}

type stall struct {
	acked api.PSN
	since time.Time
}

// of returns the seconds for which g stalls, and notes its progress in next.
func (s stalls) of(g *api.Group, now time.Time, next stalls) float64 {
	if g.Unacknowledged() == 0 || g.State == "failed" {
		return 0
	}
	key := groupEpoch{g.IP, g.Epoch}
	at, known := s[key]
	if !known || at.acked != g.AckPSN {
		at = stall{g.AckPSN, now}
	}
	next[key] = at
	if d := now.Sub(at.since); d >= stallTime {
		return d.Seconds()
	}
	return 0
}
