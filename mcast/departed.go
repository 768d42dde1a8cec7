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

// maxDepartures is how many departures are remembered. Beyond that any receiver may
// be one that comes back.
const maxDepartures = 256

// departures are the receivers that have left groups lately, the oldest first. All
// groups of a switch share it: a group that is deleted may be put again.
type departures struct {
	ring          [maxDepartures]departure
	first         uint32 // the oldest; its place is modulo maxDepartures
	count         uint32
	overflowUntil time.Duration // until then any receiver is one
}

type departure struct {
	group, member addrKey
	port          Port
	until         time.Duration // packets of its membership may be on their way
	pausesApplied time.Duration // of the port, that until knows of
}

// endsAt returns until when packets of e may be on their way, the switch's own pauses
// included (R58).
func (e *departure) endsAt(h *portTimes) time.Duration {
	return e.until + h.port(e.port).paused - e.pausesApplied
}

func (d *departures) at(i uint32) *departure { return &d.ring[(d.first+i)%maxDepartures] }

// add remembers that a receiver behind a port has left a group. Its packets are
// late by no more than quarantine, after what its port's queue has held.
func (d *departures) add(now time.Duration, h *portTimes, group, member addrKey, port Port) {
	if d.count == maxDepartures {
		d.overflowUntil = max(d.overflowUntil, d.at(0).endsAt(h))
		d.first, d.count = d.first+1, d.count-1
	}
	p := h.port(port)
	*d.at(d.count) = departure{group, member, port, now + quarantine + p.txDelay, p.paused}
	d.count++
}

// recentUntil returns until when packets of an earlier membership may be on their way; 0
// if there are none.
func (d *departures) recentUntil(now time.Duration, h *portTimes, group, member addrKey) time.Duration {
	for d.count > 0 && d.at(0).endsAt(h) <= now {
		d.first, d.count = d.first+1, d.count-1
	}
	t := d.overflowUntil
	for i := range d.count {
		if e := d.at(i); e.group == group && e.member == member {
			t = max(t, e.endsAt(h))
		}
	}
	if t <= now {
		return 0
	}
	return t
}

// noteDeparture notes that member m leaves g.
func (g *group) noteDeparture(now time.Duration, m MemberID) {
	k := &g.members[m]
	g.sw.departures.add(now, &g.sw.ports, g.ip, k.ip, g.legs[k.leg].port)
}

// noteAllDepartures notes that g ends.
func (g *group) noteAllDepartures(now time.Duration) {
	for i := range g.members {
		if g.members[i].live {
			g.noteDeparture(now, MemberID(i))
		}
	}
}

// noteEvictions notes who was evicted, as events say.
func (g *group) noteEvictions(now time.Duration, events []Event) {
	for i := range events {
		if e := &events[i]; e.Kind == MemberEvicted {
			g.noteDeparture(now, e.Member)
		}
	}
}

// probedFrom returns since when leg i may be probed; 0 if at any time.
func (g *group) probedFrom(i int) time.Duration {
	if !g.checks[i].returning {
		return 0
	}
	return g.activity[i].probeNotBefore
}

// probeNotBefore returns until when leg i is not probed; 0 if it may be.
func (g *group) probeNotBefore(now time.Duration, i int) time.Duration {
	if !g.checks[i].returning {
		return 0
	}
	g.applyPauses(i)
	if t := g.activity[i].probeNotBefore; now < t {
		return t
	}
	return 0
}
