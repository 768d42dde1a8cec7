// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Accounts of the groups: their number, the number of each key, and the order in which
// leases end. Each change of a group updates them, so that no request has to scan all
// groups.

// usage is the number of groups and members registered, or being located, under one key.
type usage struct{ groups, members int }

// memberIndex has the QPNs of the members at each host: few bytes for each, as they may be millions.
type memberIndex map[netip.Addr]map[rocev2.QPN]struct{}

func (x memberIndex) has(k MemberKey) bool {
	_, ok := x[k.IP][k.QPN]
	return ok
}

func (x memberIndex) put(k MemberKey) {
	if x[k.IP] == nil {
		x[k.IP] = map[rocev2.QPN]struct{}{}
	}
	x[k.IP][k.QPN] = struct{}{}
}

func (x memberIndex) remove(k MemberKey) {
	if delete(x[k.IP], k.QPN); len(x[k.IP]) == 0 {
		delete(x, k.IP)
	}
}

// served returns the group that counts at ip: the installed one, or else one whose
// members are being located; nil if there is neither.
func (r *Registrar) served(ip netip.Addr) *group {
	if g := r.groups[ip]; g != nil {
		return g
	}
	return r.locating[ip]
}

// book adds the group at ip to the accounts n times; n is 1 or -1.
func (r *Registrar) book(ip netip.Addr, n int) {
	g := r.served(ip)
	if g == nil {
		return
	}
	r.addresses += n
	if g.local() {
		return
	}
	u := r.usage[g.key]
	u.groups += n
	u.members += n * len(g.reg.Members)
	if u == (usage{}) {
		delete(r.usage, g.key)
	} else {
		r.usage[g.key] = u
	}
}

// put makes g the installed group of its address.
func (r *Registrar) put(g *group) {
	ip := g.reg.Group
	r.book(ip, -1)
	if old := r.groups[ip]; old != nil {
		r.leases.stop(&old.lease)
		r.stopRepair(old)
	}
	r.groups[ip], g.search = g, nil
	r.book(ip, 1)
}

// remove takes g off the installed groups.
func (r *Registrar) remove(g *group) {
	ip := g.reg.Group
	r.book(ip, -1)
	r.leases.stop(&g.lease)
	r.stopRepair(g)
	delete(r.groups, ip)
	r.book(ip, 1)
}

// extendLease sets the end of g's lease.
func (r *Registrar) extendLease(g *group, at time.Duration) {
	g.lease.owner = g
	r.leases.set(&g.lease, at)
}

// locate makes g the group of its address whose members are being located.
func (r *Registrar) locate(g *group) {
	r.book(g.reg.Group, -1)
	if old := r.locating[g.reg.Group]; old != nil {
		r.tries.stop(&old.try)
	}
	if r.locating[g.reg.Group] = g; g.search == nil {
		g.search = &search{try: timer[*group]{owner: g}}
	}
	r.book(g.reg.Group, 1)
}

// located ends the locating of the members of a group at ip.
func (r *Registrar) located(ip netip.Addr) {
	r.book(ip, -1)
	if g := r.locating[ip]; g != nil {
		r.tries.stop(&g.try)
	}
	delete(r.locating, ip)
	r.book(ip, 1)
}

// lose removes member i from g's registration.
func (r *Registrar) lose(g *group, i int) {
	r.book(g.reg.Group, -1)
	g.reg.loseMember(i)
	if g.joined != nil {
		g.joined = slices.Delete(g.joined, i, i+1)
	}
	r.book(g.reg.Group, 1)
}

// assemble makes a the registration that is being assembled under k, in place of another
// one.
func (r *Registrar) assemble(k pendingKey, a *assembly) {
	r.forgetAssembly(k)
	a.expiry.owner = k
	r.pending[k] = a
	r.pendingUnder[k.key]++
}

// forgetAssembly drops the registration that is being assembled under k, if any.
func (r *Registrar) forgetAssembly(k pendingKey) {
	a := r.pending[k]
	if a == nil {
		return
	}
	r.expiries.stop(&a.expiry)
	delete(r.pending, k)
	if r.pendingUnder[k.key]--; r.pendingUnder[k.key] == 0 {
		delete(r.pendingUnder, k.key)
	}
}
