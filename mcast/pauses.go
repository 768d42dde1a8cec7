// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "time"

// What is not a receiver's silence: time in which the switch did not listen (R58),
// and time in which a copy waited on this side of the link (R59).

// maxTXDelay bounds what Delay believes of a port.
const maxTXDelay = 10 * time.Second

// portTimes is what the driver says of the ports, for all groups of a switch.
type portTimes struct {
	ports  []portTime // by Port; those that are not there are heard at once
	pauses uint64     // how often the switch did not listen: a round trip over one is not measured
}

type portTime struct {
	paused  time.Duration // in all
	txDelay time.Duration // that a copy waits at most before it is on the link
}

func (h *portTimes) port(p Port) portTime {
	if int(p) < len(h.ports) {
		return h.ports[p]
	}
	return portTime{}
}

func (h *portTimes) grow(p Port) *portTime {
	for int(p) >= len(h.ports) {
		h.ports = append(h.ports, portTime{})
	}
	return &h.ports[p]
}

// SetPortPaused tells the switch for how long in all, so far, nothing that came in by a
// port was looked at: the driver was not scheduled, or the part of it that receives
// from the port. That time is not the silence of a receiver behind the port: it
// counts for no DeadAfter, no LagTime and no probe (R58). A total below an earlier
// one says nothing. The driver calls it before Advance.
func (s *Switch) SetPortPaused(port Port, total time.Duration) {
	if h := s.ports.grow(port); total > h.paused {
		h.paused = total
		s.ports.pauses++
	}
}

// SetPortDelay tells the switch how long a copy may wait in the queue of a port before it
// is on the link: a receiver cannot be silent about what it has not been sent (R59).
func (s *Switch) SetPortDelay(port Port, most time.Duration) {
	s.ports.grow(port).txDelay = min(max(most, 0), maxTXDelay)
}

// newPauses is how long leg i was not heard since its times were last brought up to
// date.
func (g *group) newPauses(i int) time.Duration {
	return g.sw.ports.port(g.legs[i].port).paused - g.activity[i].pausesApplied
}

// applyPauses moves the times from which leg i is waited for by what was not heard
// since. Every use of them comes after it.
func (g *group) applyPauses(i int) {
	d := g.newPauses(i)
	if d == 0 {
		return
	}
	l := &g.activity[i]
	l.pausesApplied += d
	l.livenessSince += d
	l.lastHeard += d
	l.lagSince += d
	l.recovery.expectedSince += d
	l.probeNotBefore += d
}

func (g *group) applyAllPauses() {
	for i := range g.activity {
		g.applyPauses(i)
	}
}

// livenessTimeout is how long leg i may be silent: DeadAfter, or as many round trips as
// there are probes in it if it follows them (GroupSpec.DeadAfterMax), and what its port's
// queue delays, twice if the store is the rest of that queue.
func (g *group) livenessTimeout(i int) time.Duration {
	d := g.deadAfter
	if g.deadAfterMax > d {
		r := livenessProbes * (g.activity[i].recovery.rtt + 4*g.activity[i].recovery.rttVar)
		if r == 0 || r > g.deadAfterMax {
			r = g.deadAfterMax // also before anything is measured
		}
		d = max(d, r)
	}
	delay := g.sw.ports.port(g.legs[i].port).txDelay
	if g.acks[i].flags&recovering != 0 {
		delay *= 2
	}
	return d + delay
}
