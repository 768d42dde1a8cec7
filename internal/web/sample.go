// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/watch"
)

// Most that a sample has. A page with more could not be read.
const (
	maxGroups  = 256
	maxMembers = 4096 // of all groups
)

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

// group is a group with its most important members.
type group struct {
	api.Group
	MembersLeftOut int `json:"members_left_out,omitempty"`
}

// sample asks the switch.
func (s *sampler) sample(now time.Time) (*sample, error) {
	x := &sample{Time: now, Version: s.version}
	list, leftOut, err := s.backend.BusiestGroups(maxGroups)
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
	x.Groups, x.LeftOut = bound(list), leftOut
	return x, nil
}

// bound reduces the groups' members to the most important ones.
func bound(list []api.Group) (kept []group) {
	for i := range list {
		kept = append(kept, group{Group: list[i]})
	}
	room := maxMembers
	for i := range kept {
		g := &kept[i]
		most := max(room/(len(kept)-i), 2)
		if g.MembersLeftOut = max(0, len(g.Members)-most); g.MembersLeftOut > 0 {
			g.Members = slices.SortedStableFunc(slices.Values(g.Members), func(a, b api.Member) int {
				return cmp.Or(cmp.Compare(watch.Rank(&b, &g.Group), watch.Rank(&a, &g.Group)), cmp.Compare(b.Lag, a.Lag))
			})[:most]
		}
		room = max(0, room-len(g.Members))
	}
	return kept
}
