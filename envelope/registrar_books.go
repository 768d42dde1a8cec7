// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"container/heap"
	"net/netip"
	"slices"
	"time"
)

// Accounts of the groups: their number, the number of each key, and the order in which
// leases end. Each change of a group updates them, so that no request has to scan all
// groups.

// usage is the number of groups and members registered, or being located, under one key.
type usage struct{ groups, members int }

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
		r.leases.stop(old)
	}
	r.groups[ip] = g
	r.book(ip, 1)
}

// remove takes g off the installed groups.
func (r *Registrar) remove(g *group) {
	ip := g.reg.Group
	r.book(ip, -1)
	r.leases.stop(g)
	delete(r.groups, ip)
	r.book(ip, 1)
}

// locate makes g the group of its address whose members are being located.
func (r *Registrar) locate(g *group) {
	r.book(g.reg.Group, -1)
	r.locating[g.reg.Group] = g
	r.book(g.reg.Group, 1)
}

// located ends the locating of the members of a group at ip.
func (r *Registrar) located(ip netip.Addr) {
	r.book(ip, -1)
	delete(r.locating, ip)
	r.book(ip, 1)
}

// lose removes member i from g's registration.
func (r *Registrar) lose(g *group, i int) {
	r.book(g.reg.Group, -1)
	g.reg.Members = slices.Delete(g.reg.Members, i, i+1)
	r.book(g.reg.Group, 1)
}

// leases are the installed groups with a lease: a heap, the first to end on top.
type leases []*group

func (l leases) Len() int           { return len(l) }
func (l leases) Less(i, j int) bool { return l[i].leaseUntil < l[j].leaseUntil }
func (l leases) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].lease, l[j].lease = i+1, j+1
}

func (l *leases) Push(x any) {
	g := x.(*group)
	*l = append(*l, g)
	g.lease = len(*l)
}

func (l *leases) Pop() any {
	n := len(*l) - 1
	g := (*l)[n]
	(*l)[n] = nil
	*l = (*l)[:n]
	g.lease = 0
	return g
}

// extend sets the end of g's lease to t.
func (l *leases) extend(g *group, t time.Duration) {
	g.leaseUntil = t
	if g.lease == 0 {
		heap.Push(l, g)
	} else {
		heap.Fix(l, g.lease-1)
	}
}

// stop removes g's lease, if it has one.
func (l *leases) stop(g *group) {
	if g.lease > 0 {
		heap.Remove(l, g.lease-1)
	}
}

// ended removes and returns the groups whose lease has ended, in the order of their
// addresses.
func (l *leases) ended(now time.Duration) (gs []*group) {
	for len(*l) > 0 && (*l)[0].leaseUntil <= now {
		gs = append(gs, heap.Pop(l).(*group))
	}
	slices.SortFunc(gs, func(a, b *group) int { return a.reg.Group.Compare(b.reg.Group) })
	return gs
}
