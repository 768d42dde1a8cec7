// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// Most that a sample has. A page with more could not be read.
const (
	maxGroups  = 256
	maxMembers = 4096 // members of all groups
	maxWaits   = 4    // groups that wait, whose waits are explained
)

// sample is what the page shows of one moment.
type sample struct {
	watch.Sample
	Groups   []group                        `json:"groups"`
	LeftOut  int                            `json:"groups_left_out,omitempty"`
	Topology *api.Topology                  `json:"topology"`
	Points   map[string]float64             `json:"points"`          // the newest values of the history's series
	Waits    map[string]*api.ACKExplanation `json:"waits,omitempty"` // what groups wait for that stall or are slow, by address
}

// group is a group with its most important members.
type group struct {
	watch.Group
	MembersLeftOut int `json:"members_left_out,omitempty"`
}

// sample asks the switch. Its points go into the history.
func (s *sampler) sample(now time.Time) (*sample, error) {
	x := &sample{Points: make(map[string]float64)}
	x.Time, x.Version = now, s.version
	list, leftOut, err := s.backend.BusiestGroups(maxGroups)
	if err != nil {
		return nil, err
	}
	ports, err := s.backend.Ports()
	if err != nil {
		return nil, err
	}
	if x.Topology, err = s.backend.Topology(); err != nil {
		return nil, err
	}
	if x.Stats, err = s.backend.Stats(); err != nil {
		return nil, err
	}
	x.Fill(list, ports, s.before)
	points := pointsOf(&x.Sample, s.before)
	for _, p := range points {
		x.Points[p.series] = p.value
	}
	s.history.add(now, points)
	s.before = &x.Sample
	x.Waits = s.waits(x.Sample.Groups)
	x.Groups, x.LeftOut = bound(x.Sample.Groups), leftOut
	return x, nil
}

// waits explains what groups wait for that stall or are slow, as far as there are few of them.
func (s *sampler) waits(groups []watch.Group) map[string]*api.ACKExplanation {
	all := make(map[string]*api.ACKExplanation)
	for i := range groups {
		if g := &groups[i]; len(all) < maxWaits && (g.StallSeconds > 0 || g.SlowedBy.IsValid()) {
			if e, err := s.backend.ExplainACK(g.IP); err == nil { // else the group has gone meanwhile
				all[g.IP.String()] = e
			}
		}
	}
	return all
}

// bound reduces the groups' members to the most important ones.
func bound(list []watch.Group) (kept []group) {
	kept = make([]group, len(list))
	for i := range list {
		kept[i].Group = list[i]
		kept[i].Members = append([]api.Member{}, list[i].Members...) // an empty list, not null
	}
	room := maxMembers
	for i := range kept {
		g := &kept[i]
		most := max(room/(len(kept)-i), 2)
		if g.MembersLeftOut = max(0, len(g.Members)-most); g.MembersLeftOut > 0 {
			g.Members = slices.SortedStableFunc(slices.Values(g.Members), func(a, b api.Member) int {
				return cmp.Or(cmp.Compare(watch.Rank(&b, &g.Group.Group), watch.Rank(&a, &g.Group.Group)), cmp.Compare(b.Lag, a.Lag))
			})[:most]
		}
		room = max(0, room-len(g.Members))
	}
	return kept
}
