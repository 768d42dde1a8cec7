// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
)

// Groups with members at other switches. Only the members that are here have locations,
// hosts, proofs and pins; the others have the neighbour that they are behind.

// membersHere returns r with those of its members that are at this switch.
func membersHere(r *envelope.Registration) *envelope.Registration {
	if r.Tree == nil {
		return r
	}
	here := *r
	here.Members = nil
	for i := range r.Members {
		if r.Tree.Legs[i] == envelope.NoNeighbour {
			here.Members = append(here.Members, r.Members[i])
		}
	}
	return &here
}

// isHere reports whether the member is at this switch.
func (s *slot) isHere() bool { return s.behind == envelope.NoNeighbour }

// checkLinks returns a rejection that names the first member behind a neighbour that is not
// known (any more).
func (d *directory) checkLinks(r *envelope.Registration) envelope.Verdict {
	for i := range r.Members {
		if r.Tree == nil || r.Tree.Legs[i] == envelope.NoNeighbour {
			continue
		}
		if _, ok := d.switches.LinkTo(r.Tree.Legs[i]); !ok {
			return rejected(envelope.Problem{Reason: envelope.NoWay, Member: r.Members[i].Key()})
		}
	}
	return accepted
}

// Check is Install without effect: whether the members of r that are here are located and
// confirmed, and whether there is room. If it accepts r, Install takes the same locations
// unless they have changed since: the answers of hosts are fresh for a second, and the
// switches of a tree need longer.
func (d *directory) Check(r *envelope.Registration, key envelope.KeyID) envelope.Verdict {
	places, verdict := d.check(r, key)
	if verdict.Kind == envelope.VerdictAccepted {
		d.noteChecked(r, places)
	}
	return verdict
}

// checkedRegistration is one that Check has accepted lately.
type checkedRegistration struct {
	reg    *envelope.Registration // the registrar's
	places []locate.Location      // the locations of the members here
	kernel []locate.Location      // what the kernel said of them
	at     time.Duration
}

// checkedTTL is longer than the registrar takes from Check to Install.
const checkedTTL = 30 * time.Second

func (d *directory) noteChecked(r *envelope.Registration, places []locate.Location) {
	c := checkedRegistration{reg: r, places: places, at: d.now()}
	fresh, _ := d.newHere(r)
	for _, m := range fresh.Members {
		c.kernel = append(c.kernel, d.hosts.Of(m.IP).At())
	}
	d.checked[r.Group] = c
}

// takeChecked returns the locations that Check has found for r, and whether they are still
// those of the members' hosts.
func (d *directory) takeChecked(r *envelope.Registration) ([]locate.Location, bool) {
	c, ok := d.checked[r.Group]
	delete(d.checked, r.Group)
	if !ok || c.reg != r || d.checkLinks(r) != accepted {
		return nil, false
	}
	fresh, verdict := d.newHere(r)
	if verdict != accepted || len(fresh.Members) != len(c.kernel) {
		return nil, false
	}
	for i, m := range fresh.Members {
		h := d.hosts.Of(m.IP)
		if h == nil || h.Err() != nil || !location.Same(h.At(), c.kernel[i]) {
			return nil, false
		}
	}
	return c.places, true
}

// expireChecked forgets registrations that were not installed.
func (d *directory) expireChecked(now time.Duration) {
	maps.DeleteFunc(d.checked, func(_ netip.Addr, c checkedRegistration) bool { return now-c.at > checkedTTL })
}

// setNeighbours records the neighbours that g has legs to.
func (d *directory) setNeighbours(g *group, slots []slot) {
	for _, n := range g.neighbours {
		if delete(d.over[n], g); len(d.over[n]) == 0 {
			delete(d.over, n)
		}
	}
	g.neighbours = nil
	for i := range slots {
		if n := slots[i].behind; n != envelope.NoNeighbour && !slots[i].gone && !slices.Contains(g.neighbours, n) {
			g.neighbours = append(g.neighbours, n)
			if d.over[n] == nil {
				d.over[n] = make(map[*group]struct{})
			}
			d.over[n][g] = struct{}{}
		}
	}
}

// neighbourChanged has the workers tell the core of the present session with n, in all
// groups with a leg there, some of them in each iteration of the control loop.
func (d *directory) neighbourChanged(n mcast.Neighbor) {
	for g := range d.over[n] {
		d.noteStaleTable(g)
	}
}

// linkMTU returns the lowest MTU of the links to r's neighbours, or most.
func (d *directory) linkMTU(r *envelope.Registration, most int) int {
	if r.Tree == nil {
		return most
	}
	for _, n := range r.Tree.Legs {
		if l, ok := d.switches.LinkTo(n); ok && n != envelope.NoNeighbour {
			if most = min(most, d.ports[l.Port].mtu); l.MTU > 0 {
				most = min(most, l.MTU)
			}
		}
	}
	return most
}

// portOf returns the port that frames for the member leave by, -1 if there is none.
func (d *directory) portOf(s *slot) int {
	if s.isHere() {
		return d.plane.PortIndex(s.at().Ifindex)
	}
	if l, ok := d.switches.LinkTo(s.behind); ok {
		return l.Port
	}
	return -1
}
