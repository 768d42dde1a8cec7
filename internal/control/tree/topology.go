// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
)

// SessionText is a session's number, as operators see it at both ends.
func SessionText(s uint64) string { return fmt.Sprintf("%016x", s) }

// Describe makes the API's view of other switches. It returns false if there are none.
func (s *Switches) Describe(t *api.Topology, now time.Duration) bool {
	if s.Hellos == nil {
		return false
	}
	t.Switch = s.Hellos.ID().String()
	for _, l := range s.Hellos.Links() {
		if s.Port(l.Port).Name == "" {
			continue // no port, or one that was removed
		}
		t.Links = append(t.Links, s.describeLink(&l, now))
	}
	for _, a := range s.Table.All() {
		p := s.Port(a.Port)
		if p.Name == "" {
			continue
		}
		n := api.NeighbourSwitch{
			Number: uint32(a.Number), Port: p.Name, Switch: a.ID.String(), State: api.LinkDown, Reason: a.Reason.String(),
			MAC: a.MAC.String(), MTU: a.MTU, Session: SessionText(a.Session), Age: (now - a.Since).Seconds(), Hold: a.Hold.Seconds(),
		}
		if a.Up {
			n.State = api.LinkUp
		}
		n.API = apiOf(&a)
		t.Neighbours = append(t.Neighbours, n)
	}
	return true
}

// linkStates are the states of adjacencies in the API.
var linkStates = map[hello.State]string{hello.Down: api.LinkDown, hello.Init: api.LinkInit, hello.Up: api.LinkUp}

func (s *Switches) describeLink(l *neighbours.Link, now time.Duration) api.Link {
	p := s.Port(l.Port)
	a := api.Link{
		Port: p.Name, MAC: p.MAC.String(), MTU: p.MTU, State: linkStates[l.State], Reason: l.Reason.String(),
		Sent: l.Sent, Received: l.Received, NotSent: l.NotSent,
	}
	if l.Drops != ([hello.NumDrops]uint64{}) {
		a.Drops = make(map[string]uint64)
		Reasons.AddTo(a.Drops, a.Drops, l.Drops[:])
	}
	if x := l.LastDrop; x.Drop != hello.NoDrop {
		a.LastDrop, a.LastDropMAC, a.LastDropAge = x.Drop.Text(), x.From.String(), (now - x.At).Seconds()
	}
	return a
}

// apiOf returns where a neighbour's API over TCP is, as it says; "" if it has said none.
func apiOf(a *neighbours.Adjacency) string {
	if !a.API.IsValid() {
		return ""
	}
	return a.API.String()
}

// NameOf returns the ID of a neighbour; "" of none.
func (s *Switches) NameOf(n mcast.Neighbor) string {
	a, ok := s.Table.Find(n)
	if !ok {
		return ""
	}
	return a.ID.String()
}

// DescribeLeg makes the API's view of the neighbour that a leg is to.
func (s *Switches) DescribeLeg(n mcast.Neighbor) api.TreeLeg {
	a, ok := s.Table.Find(n)
	if !ok {
		return api.TreeLeg{State: api.LinkDown, Reason: "the neighbour is not known any more"}
	}
	l := api.TreeLeg{Switch: a.ID.String(), Port: s.Port(a.Port).Name, State: api.LinkDown, Reason: a.Reason.String(), API: apiOf(&a)}
	if a.Up {
		l.State, l.Reason = api.LinkUp, ""
	}
	return l
}

// DescribeMember adds to m, a member behind neighbour n, where it is.
func (s *Switches) DescribeMember(m *api.Member, n mcast.Neighbor) {
	if n == envelope.NoNeighbour {
		return
	}
	if a, ok := s.Table.Find(n); ok {
		m.Port, m.MAC, m.Switch = s.Port(a.Port).Name, a.MAC.String(), a.ID.String()
	}
}
