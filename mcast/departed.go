// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Receivers that were members of the same group shortly before (R73).
//
// An ACK of the last membership may be on its way to the switch, and data of that
// membership on its way to the receiver. The ACK looks like the answer to a keepalive
// probe, and is wrong as soon as that data has arrived. So a receiver that returns is not
// probed before these packets have arrived. Then it has to answer two probes, and the
// second is sent after the answer to the first.

// maxDepartures is how many departures are recorded. Beyond that any receiver may be one
// that returns.
const maxDepartures = 256

// departures are the receivers that have left groups within the last quarantine and the
// delay of their ports, the oldest first. All groups of a switch share the list: a group
// that is deleted may be put again.
type departures struct {
	ring          [maxDepartures]departure
	first         uint32 // the oldest; its slot is modulo maxDepartures
	count         uint32
	overflowUntil time.Duration // until then any receiver may be one of them
}

type departure struct {
	group, member rocev2.AddrKey
	port          Port
	until         time.Duration // packets of its membership may be on their way
	pausesApplied time.Duration // pauses of the port that until includes
}

// endsAt returns until when packets of e's membership may be on their way. The switch's
// own pauses do not count (R58).
func (e *departure) endsAt(h *portTimes) time.Duration {
	return e.until + h.port(e.port).paused - e.pausesApplied
}

func (d *departures) at(i uint32) *departure { return &d.ring[(d.first+i)%maxDepartures] }

// add records that a receiver behind a port has left a group. Its packets are delayed by
// no more than quarantine and the delay of the port's queue.
func (d *departures) add(now time.Duration, h *portTimes, group, member rocev2.AddrKey, port Port) {
	if d.count == maxDepartures {
		d.overflowUntil = max(d.overflowUntil, d.at(0).endsAt(h))
		d.first, d.count = d.first+1, d.count-1
	}
	p := h.port(port)
	*d.at(d.count) = departure{group, member, port, now + quarantine + p.txDelay, p.paused}
	d.count++
}

// recentUntil returns until when packets of an earlier membership of member in group may
// be on their way; 0 if there are none.
func (d *departures) recentUntil(now time.Duration, h *portTimes, group, member rocev2.AddrKey) time.Duration {
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

// noteDeparture records that member m leaves g.
func (g *group) noteDeparture(now time.Duration, m MemberID) {
	k := &g.members[m]
	g.sw.departures.add(now, &g.sw.ports, g.ip, k.ip, g.legs[k.leg].port)
}

// noteAllDepartures records that all members leave g, which ends.
func (g *group) noteAllDepartures(now time.Duration) {
	for i := range g.members {
		if g.members[i].live {
			g.noteDeparture(now, MemberID(i))
		}
	}
}

// noteEvictions records the departures of the members that events report as evicted.
func (g *group) noteEvictions(now time.Duration, events []Event) {
	for i := range events {
		if e := &events[i]; e.Kind == MemberEvicted {
			g.noteDeparture(now, e.Member)
		}
	}
}

// probeNotBefore returns until when leg i is not probed; 0: it may be probed now.
func (g *group) probeNotBefore(now time.Duration, i int) time.Duration {
	if v := &g.numbering.checks[i]; !v.returning || v.probesSent > 0 {
		return 0
	}
	g.applyPauses(i)
	if t := g.activity[i].probedFrom; now < t {
		return t
	}
	return 0
}
