// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"net/netip"
	"sync"
)

// MAC is an Ethernet address, as a key.
type MAC [6]byte

// Neighbour is the last reported state of a neighbour entry.
type Neighbour struct {
	MAC    MAC
	Usable bool // false: being resolved, failed or deleted
}

// Set is a set of changes, without duplicates.
type Set struct {
	All        bool                      // too many changes for the lists: anything may have changed
	Neighbours map[netip.Addr]Neighbour  // entries of neighbour tables, by address
	Learnt     map[MAC]bool              // entries of forwarding databases; false: deleted
	Links      map[int]struct{}          // interfaces, by index
	Routes     map[netip.Prefix]struct{} // destinations
}

// maxChanges bounds each list of a Set.
const maxChanges = 1024

func newSet() Set {
	return Set{
		Neighbours: make(map[netip.Addr]Neighbour), Learnt: make(map[MAC]bool),
		Links: make(map[int]struct{}), Routes: make(map[netip.Prefix]struct{}),
	}
}

// Changes collects the changes that netlink reports until Take is called. It may be used
// from any goroutine.
type Changes struct {
	// Bell has room for one: it rings when there are changes.
	Bell chan struct{}
	mu   sync.Mutex
	set  Set
}

// NewChanges returns an empty collection.
func NewChanges() *Changes { return &Changes{Bell: make(chan struct{}, 1), set: newSet()} }

// Take returns the changes since the last call.
func (c *Changes) Take() Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.set
	c.set = newSet()
	return s
}

// Links reports whether an interface has changed since the last Take.
func (c *Changes) Links() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set.All || len(c.set.Links) > 0
}

// add adds the changes that f puts into the set, and rings the bell.
func (c *Changes) add(f func(*Set)) {
	c.mu.Lock()
	if !c.set.All {
		f(&c.set)
		if s := &c.set; len(s.Neighbours)+len(s.Learnt)+len(s.Links)+len(s.Routes) > maxChanges {
			*s = newSet()
			s.All = true
		}
	}
	c.mu.Unlock()
	select {
	case c.Bell <- struct{}{}:
	default: // it rings already
	}
}

// Everything records that anything may have changed.
func (c *Changes) Everything() {
	c.add(func(s *Set) {
		*s = newSet()
		s.All = true
	})
}

// Neighbour records a change of a neighbour entry.
func (c *Changes) Neighbour(ip netip.Addr, n Neighbour) {
	c.add(func(s *Set) { s.Neighbours[ip.Unmap()] = n })
}

// Learn records that a bridge has learnt, or forgotten, the port of mac. If both are
// reported, learnt counts: a host that moves causes both.
func (c *Changes) Learn(mac MAC, learnt bool) {
	c.add(func(s *Set) { s.Learnt[mac] = s.Learnt[mac] || learnt })
}

// Link records a change of an interface.
func (c *Changes) Link(ifindex int) { c.add(func(s *Set) { s.Links[ifindex] = struct{}{} }) }

// Route records a change of the route to p.
func (c *Changes) Route(p netip.Prefix) {
	c.add(func(s *Set) { s.Routes[p.Masked()] = struct{}{} })
}
