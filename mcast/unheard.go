// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "time"

// What is not a receiver's silence: time in which the switch did not listen (R58),
// and time in which a copy waited on this side of the link (R59).

// maxDelay bounds what Delay believes of a port.
const maxDelay = 10 * time.Second

// hearing is what the driver says of the ports, for all groups of a switch.
type hearing struct {
	ports  []portHearing // by Port; those that are not there are heard at once
	pauses uint64        // how often the switch did not listen: a round trip over one is not measured
}

type portHearing struct {
	unheard time.Duration // in all
	delay   time.Duration // that a copy waits at most before it is on the link
}

func (h *hearing) at(p Port) portHearing {
	if int(p) < len(h.ports) {
		return h.ports[p]
	}
	return portHearing{}
}

func (h *hearing) of(p Port) *portHearing {
	for int(p) >= len(h.ports) {
		h.ports = append(h.ports, portHearing{})
	}
	return &h.ports[p]
}

// Unheard tells the switch for how long in all, so far, nothing that came in by a
// port was looked at: the driver was not scheduled, or the part of it that receives
// from the port. That time is not the silence of a receiver behind the port: it
// counts for no DeadAfter, no LagTime and no probe (R58). A total below an earlier
// one says nothing. The driver calls it before Advance.
func (s *Switch) Unheard(port Port, total time.Duration) {
	if h := s.hearing.of(port); total > h.unheard {
		h.unheard = total
		s.hearing.pauses++
	}
}

// Delay tells the switch how long a copy may wait in the queue of a port before it
// is on the link: a receiver cannot be silent about what it has not been sent (R59).
func (s *Switch) Delay(port Port, most time.Duration) {
	s.hearing.of(port).delay = min(max(most, 0), maxDelay)
}

// missed is how long leg i was not heard since its times were last brought up to
// date.
func (g *group) missed(i int) time.Duration {
	return g.sw.hearing.at(g.legs[i].port).unheard - g.tracks[i].unheard
}

// catchUp moves the times from which leg i is waited for by what was not heard
// since. Every use of them comes after it.
func (g *group) catchUp(i int) {
	d := g.missed(i)
	if d == 0 {
		return
	}
	l := &g.tracks[i]
	l.unheard += d
	l.watched += d
	l.heard += d
	l.marked += d
	l.mend.owed += d
	l.from += d
}

func (g *group) catchUpAll() {
	for i := range g.tracks {
		g.catchUp(i)
	}
}

// deadAfterOf is how long leg i may be silent: DeadAfter, or as many round trips as
// there are probes in it if it follows them (GroupSpec.DeadMost), and what its port's
// queue delays, twice if the store is the rest of that queue.
func (g *group) deadAfterOf(i int) time.Duration {
	d := g.deadAfter
	if g.deadMost > d {
		r := livenessProbes * (g.tracks[i].mend.rtt + 4*g.tracks[i].mend.rttVar)
		if r == 0 || r > g.deadMost {
			r = g.deadMost // also before anything is measured
		}
		d = max(d, r)
	}
	delay := g.sw.hearing.at(g.legs[i].port).delay
	if g.branches[i].bits&late != 0 {
		delay *= 2
	}
	return d + delay
}
