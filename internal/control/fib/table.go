// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// Table has the routes of destinations. It is not safe for use by several goroutines.
//
// An event concerns the destinations that depend on its object, which indexes find; they are
// matched first. A sweep, the match of all destinations, is what an event may concern
// beyond these: a link that is up again may revive a route that was removed silently.
type Table struct {
	all    []*destination // the destinations in the order of the sweep
	cursor int            // the next of all to sweep
	sweep  int            // how many of all are still to sweep

	byAddr  bart.Table[*destination]
	byLink  map[int]map[*destination]struct{}
	byGroup map[uint32]map[*destination]struct{}

	urgent  []*destination // the destinations to be matched before the sweep goes on
	changed []*destination
}

// destination is an address with its route.
type destination struct {
	addr     netip.Addr
	users    int // 0: removed
	route    Route
	position int // the index in all
	urgent   bool
	changed  bool
}

// maxConcerned bounds what one route event marks: a default route concerns every
// destination, and becomes a sweep.
const maxConcerned = 256

// NewTable returns a table without destinations.
func NewTable() *Table {
	return &Table{byLink: make(map[int]map[*destination]struct{}), byGroup: make(map[uint32]map[*destination]struct{})}
}

// Len returns the number of destinations.
func (t *Table) Len() int { return len(t.all) }

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func (t *Table) find(a netip.Addr) *destination {
	d, _ := t.byAddr.Get(hostPrefix(a))
	return d
}

// Subscribe adds a destination, or a user of one that is there. A new one is matched
// next.
func (t *Table) Subscribe(a netip.Addr) {
	a = a.Unmap().WithZone("")
	d := t.find(a)
	if d == nil {
		d = &destination{addr: a, position: len(t.all)}
		t.byAddr.Insert(hostPrefix(a), d)
		t.all = append(t.all, d)
		if t.sweep > 0 {
			t.sweep++ // it lies between the cursor and those that the sweep began with
		}
		t.hurry(d)
	}
	d.users++
}

// Unsubscribe removes a user of a destination, and with the last one the destination.
func (t *Table) Unsubscribe(a netip.Addr) {
	a = a.Unmap().WithZone("")
	d := t.find(a)
	if d == nil {
		return
	}
	if d.users--; d.users > 0 {
		return
	}
	t.byAddr.Delete(hostPrefix(a))
	t.index(d, false)
	last := len(t.all) - 1
	if d.position != last {
		moved := t.all[last]
		t.all[d.position], moved.position = moved, d.position
		t.hurry(moved) // the sweep may have passed its new place, but not its old one
	}
	t.all = slices.Delete(t.all, last, last+1)
	t.sweep = min(t.sweep, last)
	if t.cursor >= last {
		t.cursor = 0
	}
}

// Route returns the route of a destination; false if it is not subscribed.
func (t *Table) Route(a netip.Addr) (Route, bool) {
	d := t.find(a.Unmap().WithZone(""))
	if d == nil {
		return Route{}, false
	}
	return d.route, true
}

// hurry has d matched before the sweep goes on.
func (t *Table) hurry(d *destination) {
	if !d.urgent {
		d.urgent = true
		t.urgent = append(t.urgent, d)
	}
}

// Feed takes an event.
func (t *Table) Feed(e Event) {
	switch {
	case e.All:
		t.Sweep()
	case e.Link != 0:
		for d := range t.byLink[e.Link] {
			t.hurry(d)
		}
		t.Sweep()
	case e.Group != 0:
		for d := range t.byGroup[e.Group] {
			t.hurry(d)
		}
		t.Sweep() // the object may be a member of groups that have no event of their own
	case e.Prefix.IsValid():
		seen := 0
		for _, d := range t.byAddr.Subnets(e.Prefix.Masked()) {
			if seen++; seen > maxConcerned {
				t.Sweep()
				break
			}
			if d.route.Prefix.Bits() <= e.Prefix.Bits() { // -1 without a route
				t.hurry(d)
			}
		}
	}
}

// Sweep has all destinations matched again, once.
func (t *Table) Sweep() { t.sweep = len(t.all) }

// Urgent reports whether destinations that an event concerns wait for their match.
func (t *Table) Urgent() bool { return len(t.urgent) > 0 }

// Next returns the next destination to match.
func (t *Table) Next() (a netip.Addr, ok bool) {
	for len(t.urgent) > 0 {
		d := t.urgent[0]
		t.urgent, d.urgent = t.urgent[1:], false
		if d.users > 0 {
			return d.addr, true
		}
	}
	if t.sweep == 0 {
		return netip.Addr{}, false
	}
	d := t.all[t.cursor]
	t.sweep--
	if t.cursor++; t.cursor == len(t.all) {
		t.cursor = 0
	}
	return d.addr, true
}

// Answer takes the kernel's answer for a destination, and reports whether its next hops,
// or the reason that it has none, have changed.
func (t *Table) Answer(a netip.Addr, r Route) bool {
	d := t.find(a)
	if d == nil {
		return false
	}
	if len(r.links) == 0 && r.group == 0 {
		// The route's former links may bring it back.
		r.links, r.group = d.route.links, d.route.group
	}
	differs := !d.route.same(r)
	t.index(d, false)
	d.route = r
	t.index(d, true)
	if differs && !d.changed {
		d.changed = true
		t.changed = append(t.changed, d)
	}
	return differs
}

// index adds d to the indexes of what its route depends on, or removes it.
func (t *Table) index(d *destination, add bool) {
	for _, l := range d.route.links {
		mark(t.byLink, l, d, add)
	}
	if d.route.group != 0 {
		mark(t.byGroup, d.route.group, d, add)
	}
}

func mark[K comparable](m map[K]map[*destination]struct{}, k K, d *destination, add bool) {
	if add {
		if m[k] == nil {
			m[k] = make(map[*destination]struct{})
		}
		m[k][d] = struct{}{}
		return
	}
	delete(m[k], d)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

// Changed returns the destinations whose answers differ from those before, once each,
// since the last call. Those that are not subscribed any more are left out.
func (t *Table) Changed() []netip.Addr {
	var addrs []netip.Addr
	for _, d := range t.changed {
		if d.changed = false; d.users > 0 {
			addrs = append(addrs, d.addr)
		}
	}
	t.changed = nil
	return addrs
}
