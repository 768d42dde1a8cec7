// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Adjacency is a neighbour switch at a port. Its number stays the same, also over its
// restarts, and is that of no other one.
type Adjacency struct {
	Number  mcast.Neighbor // the number, from 1
	Port    int            // index in the data plane
	ID      hello.SwitchID
	Up      bool
	Session uint64 // the session of the adjacency that is up, or that was last
	MAC     rocev2.MAC
	MTU     int            // the MTU of the neighbour's port
	Hold    time.Duration  // silence after which it is down
	Since   time.Duration  // the time when it came up in this session, or went down
	Reason  hello.Reason   // why it is down
	API     netip.AddrPort // where the neighbour's API over TCP is; not valid: it has said none
}

// Change is what has become of an adjacency. A restart, or an adjacency that was lost and came
// up again in between, is a change from Up to Up with another session.
type Change struct {
	Was, Is Adjacency
	// Lost is why the former session ended, if Was is Up.
	Lost hello.Reason
}

// Ended reports whether a session has ended by the change.
func (c *Change) Ended() bool { return c.Was.Up && (!c.Is.Up || c.Was.Session != c.Is.Session) }

// Began reports whether a session has begun by the change.
func (c *Change) Began() bool { return c.Is.Up && (!c.Was.Up || c.Was.Session != c.Is.Session) }

// maxDown bounds the neighbours of a port that are down and remembered. One that is forgotten
// has another number when it comes back.
const maxDown = 8

// Table has all neighbours that have been up. It belongs to one goroutine.
type Table struct {
	list []Adjacency // adjacencies by number
	last mcast.Neighbor
}

// Update takes the state of all links, and returns what has changed since the last call.
func (t *Table) Update(now time.Duration, links []Link) (changes []Change) {
	for i := range links {
		l := &links[i]
		n := &l.Neighbour
		up := l.State == hello.Up
		for j := range t.list {
			if a := &t.list[j]; a.Port == l.Port && a.Up && !(up && a.ID == n.ID) {
				was := *a
				a.Up, a.Since, a.Reason = false, now, l.Lost
				changes = append(changes, Change{was, *a, l.Lost})
			}
		}
		if !up {
			continue
		}
		a := t.find(l.Port, n.ID)
		was := *a
		a.Up, a.Session, a.MAC, a.MTU, a.Hold, a.Reason, a.API = true, n.Session, n.MAC, int(n.MTU), n.Hold(), hello.NoReason, n.API
		if !was.Up || was.Session != a.Session {
			a.Since = now
		}
		if was != *a {
			changes = append(changes, Change{was, *a, l.Lost})
		}
	}
	return changes
}

// find returns the neighbour of that ID at a port, which is entered if it is new.
func (t *Table) find(port int, id hello.SwitchID) *Adjacency {
	if i := slices.IndexFunc(t.list, func(a Adjacency) bool { return a.Port == port && a.ID == id }); i >= 0 {
		return &t.list[i]
	}
	var down []Adjacency
	for _, a := range t.list {
		if a.Port == port && !a.Up {
			down = append(down, a)
		}
	}
	if len(down) >= maxDown {
		oldest := slices.MinFunc(down, func(a, b Adjacency) int { return cmp.Compare(a.Since, b.Since) })
		t.list = slices.DeleteFunc(t.list, func(a Adjacency) bool { return a.Number == oldest.Number })
	}
	t.last++
	t.list = append(t.list, Adjacency{Number: t.last, Port: port, ID: id})
	return &t.list[len(t.list)-1]
}

// Recall enters a neighbour that was up before the switch started, and returns its number. It
// is down until Update says otherwise.
func (t *Table) Recall(now time.Duration, port int, id hello.SwitchID) mcast.Neighbor {
	a := t.find(port, id)
	if !a.Up && a.Reason == hello.NoReason {
		a.Since, a.Reason = now, hello.Silent
	}
	return a.Number
}

// All returns the neighbours, those that are down included, by number. The caller does not
// change the list, which is valid until the next Update.
func (t *Table) All() []Adjacency { return t.list }

// At returns the neighbour that is up at a port; false if there is none.
func (t *Table) At(port int) (Adjacency, bool) {
	for _, a := range t.list {
		if a.Port == port && a.Up {
			return a, true
		}
	}
	return Adjacency{}, false
}

// Find returns the neighbour of a number; false if there is none.
func (t *Table) Find(n mcast.Neighbor) (Adjacency, bool) {
	for _, a := range t.list {
		if a.Number == n {
			return a, true
		}
	}
	return Adjacency{}, false
}
