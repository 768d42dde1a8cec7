// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "time"

// Receivers that were members of the same group lately (R73).
//
// An ACK of the last membership may be on its way to the switch, and data of that
// time on its way to the receiver. The ACK looks like the answer to a probe, and is
// wrong as soon as that data has arrived. So a receiver that comes back is not
// probed before these packets have, and then it has to answer two probes, the second
// of which is sent after the answer to the first.

// maxDeparted is how many departures are remembered. Beyond that any receiver may
// be one that comes back.
const maxDeparted = 256

// departed are the receivers that have left groups lately, the oldest first. All
// groups of a switch share it: a group that is deleted may be put again.
type departed struct {
	ring  [maxDeparted]departure
	first uint32 // the oldest; its place is modulo maxDeparted
	n     uint32
	lost  time.Duration // until then any receiver is one
}

type departure struct {
	group, member addrKey
	port          Port
	until         time.Duration // packets of its membership may be on their way
	unheard       time.Duration // of the port, that until knows of
}

// ends returns until when packets of e may be on their way, the switch's own pauses
// included (R58).
func (e *departure) ends(h *hearing) time.Duration { return e.until + h.at(e.port).unheard - e.unheard }

func (d *departed) at(i uint32) *departure { return &d.ring[(d.first+i)%maxDeparted] }

// note remembers that a receiver behind a port has left a group. Its packets are
// late by no more than quarantine, after what its port's queue has held.
func (d *departed) note(now time.Duration, h *hearing, group, member addrKey, port Port) {
	if d.n == maxDeparted {
		d.lost = max(d.lost, d.at(0).ends(h))
		d.first, d.n = d.first+1, d.n-1
	}
	p := h.at(port)
	*d.at(d.n) = departure{group, member, port, now + quarantine + p.delay, p.unheard}
	d.n++
}

// since returns until when packets of an earlier membership may be on their way; 0
// if there are none.
func (d *departed) since(now time.Duration, h *hearing, group, member addrKey) time.Duration {
	for d.n > 0 && d.at(0).ends(h) <= now {
		d.first, d.n = d.first+1, d.n-1
	}
	t := d.lost
	for i := range d.n {
		if e := d.at(i); e.group == group && e.member == member {
			t = max(t, e.ends(h))
		}
	}
	if t <= now {
		return 0
	}
	return t
}

// leaves notes that member m leaves g.
func (g *group) leaves(now time.Duration, m MemberID) {
	k := &g.members[m]
	g.sw.departed.note(now, &g.sw.hearing, g.ip, k.ip, g.legs[k.leg].port)
}

// leaveAll notes that g ends.
func (g *group) leaveAll(now time.Duration) {
	for i := range g.members {
		if g.members[i].live {
			g.leaves(now, MemberID(i))
		}
	}
}

// left notes who was evicted, as events say.
func (g *group) left(now time.Duration, events []Event) {
	for i := range events {
		if e := &events[i]; e.Kind == MemberEvicted {
			g.leaves(now, e.Member)
		}
	}
}

// probedFrom returns since when leg i may be probed; 0 if at any time.
func (g *group) probedFrom(i int) time.Duration {
	if !g.checks[i].back {
		return 0
	}
	return g.tracks[i].from
}

// quiet returns until when leg i is not probed; 0 if it may be.
func (g *group) quiet(now time.Duration, i int) time.Duration {
	if !g.checks[i].back {
		return 0
	}
	g.catchUp(i)
	if t := g.tracks[i].from; now < t {
		return t
	}
	return 0
}
