// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Planner has the routes of a switch, which a registration through a tree follows.
type Planner interface {
	// Ways returns how group packets get to a host.
	Ways(host netip.Addr) Ways
	// Traffic returns how much was sent to a neighbour lately, in any unit.
	Traffic(n mcast.Neighbor) uint64
	// Check is Table.Install without effect: it reports whether the members of reg that
	// are here are located and confirmed, and whether there is room.
	Check(reg *Registration, key KeyID) Verdict
}

// Ways are the ways to a host. Under VerdictLater and VerdictRejected, Problem is the
// reason; the registrar adds the member.
type Ways struct {
	Verdict
	Here bool             // the host is behind a port of this switch, and no switch is between
	Hops []mcast.Neighbor // the usable next hops, if the host is not here
}

// SwitchConfig is what registration through trees needs.
type SwitchConfig struct {
	ID      SwitchID
	Auth    Auth    // the keys of switches alone; Insecure is not allowed
	Planner Planner // nil: there are no trees
	// Retry is the first wait for the answer of a neighbour, doubled each time; default
	// 50 ms.
	Retry time.Duration
	// Timeout bounds each of the two steps of a registration at the root; default 4 s.
	Timeout time.Duration
	// Grace is how long an adjacency may be lost before the groups over it end; default
	// 3 s.
	Grace time.Duration
}

func (c *SwitchConfig) setDefaults() error {
	defaultTo(&c.Retry, 50*time.Millisecond)
	defaultTo(&c.Timeout, 4*time.Second)
	defaultTo(&c.Grace, 3*time.Second)
	if c.Planner == nil {
		return nil
	}
	if c.ID == 0 || c.Auth.Insecure || c.Retry < 0 || c.Timeout < c.Retry || c.Grace < 0 {
		return fmt.Errorf("trees: switch ID %v, first retry after %v, timeout %v, grace %v: need an ID, a key, a timeout that is longer than the retry, and a positive grace", c.ID, c.Retry, c.Timeout, c.Grace)
	}
	if err := c.Auth.check(); err != nil {
		return fmt.Errorf("trees: %w", err)
	}
	return nil
}

// maxHops bounds the switches between the root and a leaf.
const maxHops = 8

// NoNeighbour is the leg of a member that is at this switch, and the parent of the root.
const NoNeighbour mcast.Neighbor = 0

// Tree is the part of a group's tree at one switch. There is one only if some member is at
// another switch.
type Tree struct {
	// Parent is the neighbour that has asked this switch to serve the group; NoNeighbour: this
	// is the root.
	Parent mcast.Neighbor
	// Neighbours are the switches next in the tree.
	Neighbours []TreeNeighbour
	// Legs has the neighbour behind which each member of the registration is, or NoNeighbour.
	Legs []mcast.Neighbor
	// Generation counts the attempts to build a tree in the group's life.
	Generation uint64
	// Elsewhere is set in a registration without a Base if the group runs at other switches
	// already: this one is new in the tree, or has lost the group.
	Elsewhere bool
}

// TreeNeighbour is a switch next in a group's tree.
type TreeNeighbour struct {
	Neighbour mcast.Neighbor
	// Levels is the number of levels of switches behind this leg. The wait for a silent
	// receiver doubles with each, so that the switch next to the receiver decides first.
	Levels int
}

func (t *Tree) clone() *Tree {
	if t == nil {
		return nil
	}
	c := *t
	c.Neighbours, c.Legs = slices.Clone(t.Neighbours), slices.Clone(t.Legs)
	return &c
}

// Leg returns the leg of member i; t may be nil.
func (t *Tree) Leg(i int) mcast.Neighbor {
	if t == nil {
		return NoNeighbour
	}
	return t.Legs[i]
}

// has reports whether n is next in the tree; t may be nil.
func (t *Tree) has(n mcast.Neighbor) bool {
	return t != nil && slices.ContainsFunc(t.Neighbours, func(x TreeNeighbour) bool { return x.Neighbour == n })
}

// ChooseLegs chooses a neighbour for each member, of hops[i]; none means that the leg is
// decided already. A neighbour that the group has is taken first, so that the tree has few
// links; members with one hop alone come before the others. Else the member's leg of before
// is taken, so that a tree that works stays; else the neighbour with the least load: by
// groups, by traffic, by a hash of group and switch.
func ChooseLegs(group netip.Addr, legs, before []mcast.Neighbor, hops [][]mcast.Neighbor, loadOf func(mcast.Neighbor) NeighbourLoad) {
	chosen := map[mcast.Neighbor]bool{}
	for _, forced := range [...]bool{true, false} {
		for i, hs := range hops {
			if len(hs) == 0 || forced != (len(hs) == 1) {
				continue
			}
			n := slices.MinFunc(hs, func(a, b mcast.Neighbor) int {
				if chosen[a] != chosen[b] {
					if chosen[a] {
						return -1
					}
					return 1
				}
				if before[i] == a && a != b {
					return -1
				} else if before[i] == b && a != b {
					return 1
				}
				x, y := loadOf(a), loadOf(b)
				return cmp.Or(cmp.Compare(x.Groups, y.Groups), cmp.Compare(x.Traffic, y.Traffic),
					cmp.Compare(tieBreak(group, x.ID), tieBreak(group, y.ID)), cmp.Compare(a, b))
			})
			legs[i], chosen[n] = n, true
		}
	}
}

// NeighbourLoad is the use of a neighbour by groups.
type NeighbourLoad struct {
	ID      SwitchID
	Groups  int    // groups that have a leg to it
	Traffic uint64 // Planner.Traffic
}

// tieBreak spreads groups over neighbours of equal load.
func tieBreak(group netip.Addr, id SwitchID) uint64 {
	a := group.As16()
	return mix(mix(mix(binary.BigEndian.Uint64(a[:8]))^binary.BigEndian.Uint64(a[8:])) ^ uint64(id))
}

// plan chooses the legs of g's members. The tree is nil if all are here and no other
// switch has asked.
func (r *Registrar) plan(g *group) (*Tree, Verdict) {
	accepted := Verdict{Kind: VerdictAccepted}
	if r.cfg.Switch.Planner == nil {
		return nil, accepted
	}
	t := &Tree{Legs: make([]mcast.Neighbor, len(g.reg.Members))}
	hops := make([][]mcast.Neighbor, len(g.reg.Members))
	remote := g.branch != nil // the one that has asked is a part of the tree
	verdict := accepted
	for i := range g.reg.Members {
		m := &g.reg.Members[i]
		if b := g.branch; b != nil && b.behind != nil && !b.behind[i] {
			t.Legs[i], remote = b.parent, true
			continue
		}
		w := r.cfg.Switch.Planner.Ways(m.IP)
		w.Problem.Member = m.Key()
		if w.Kind == VerdictAccepted && !w.Here {
			remote = true
			if hops[i] = r.usable(g, w.Hops); len(hops[i]) == 0 {
				w.Verdict = Verdict{VerdictRejected, Problem{Reason: NoWay, Member: m.Key()}}
			}
		}
		switch {
		case w.Kind == VerdictRejected:
			return nil, w.Verdict
		case w.Kind == VerdictLater && verdict.Kind == VerdictAccepted:
			verdict = w.Verdict // the others are asked for, too
		}
	}
	if verdict.Kind != VerdictAccepted || !remote {
		return nil, verdict
	}
	if what := unsupported(&g.reg, g.local()); what != 0 {
		return nil, Verdict{VerdictRejected, Problem{Reason: NotInTrees, Value: uint64(what)}}
	}
	ChooseLegs(g.reg.Group, t.Legs, r.legsBefore(g), hops, r.loadOf)
	return t, accepted
}

// usable returns the hops that are neighbours, and not where the group comes from.
func (r *Registrar) usable(g *group, hops []mcast.Neighbor) []mcast.Neighbor {
	var out []mcast.Neighbor
	for _, n := range hops {
		if r.neighbours[n] != nil && (g.branch == nil || n != g.branch.parent) {
			out = append(out, n)
		}
	}
	return r.unavoided(g.reg.Group, out)
}

func (r *Registrar) loadOf(n mcast.Neighbor) NeighbourLoad {
	return NeighbourLoad{ID: r.adjacencyOf(n).ID, Groups: len(r.over[n]), Traffic: r.cfg.Switch.Planner.Traffic(n)}
}

// unsupported returns what keeps a registration from spanning several switches, or 0.
func unsupported(reg *Registration, local bool) TreeLimit {
	switch {
	case local:
		return LimitByHand
	case reg.Policy == mcast.Quorum:
		return LimitQuorum
	}
	return 0
}
