// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"
)

// Times that do not count as a receiver's silence: the switch's pauses, in which it did
// not receive from the port (R58), and the wait of a copy on this side of the link (R59).

// maxTXDelay bounds the delay that SetPortDelay accepts for a port.
const maxTXDelay = 10 * time.Second

// portTimes has the pauses and delays of the ports, as the driver reports them, for all
// groups of a switch.
type portTimes struct {
	ports  []portTime // by Port; a port beyond the end has neither pauses nor delay
	pauses uint64     // number of pauses so far: a round trip during which one fell is not measured
}

type portTime struct {
	paused  time.Duration // total of the port's pauses
	txDelay time.Duration // the longest wait of a copy before it is on the link
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

// SetPortPaused tells the switch the total time, so far, in which no packet from a port
// was served: the driver was not scheduled, or the part of it that receives from the
// port. That time is not the silence of a receiver behind the port: it counts for no
// DeadAfter, no LagTime and no probe (R58). A total below an earlier one is ignored. The
// driver calls SetPortPaused before Advance.
func (s *Switch) SetPortPaused(port Port, total time.Duration) {
	if h := s.ports.grow(port); total > h.paused {
		h.paused = total
		s.ports.pauses++
	}
}

// SetPortDelay tells the switch how long a copy may wait in the queue of a port before it
// is on the link: silence about a packet that is not on the link does not count (R59).
func (s *Switch) SetPortDelay(port Port, most time.Duration) {
	s.ports.grow(port).txDelay = min(max(most, 0), maxTXDelay)
}

// newPauses returns the pauses of leg i's port since the leg's times were last brought up
// to date.
func (g *group) newPauses(i int) time.Duration {
	return g.sw.ports.port(g.legs[i].port).paused - g.activity[i].pausesApplied
}

// applyPauses moves the times from which leg i is waited for by the pauses since. It is
// called before every use of these times.
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
	l.probedFrom += d
}

func (g *group) applyAllPauses() {
	for i := range g.activity {
		g.applyPauses(i)
	}
}

// deadAfterOf returns DeadAfter of leg i: doubled with each level of switches behind it.
func (g *group) deadAfterOf(i int) time.Duration {
	return min(g.live.deadAfter, math.MaxInt64>>(maxLevels+1)) << g.levelsBehind(i)
}

// livenessTimeout returns how long leg i may be silent: deadAfterOf, or, if DeadAfter
// follows round trips (GroupSpec.DeadAfterMax), livenessProbes round trips if these are
// longer, and the delay of its port's queue. The delay counts twice while the leg is
// recovering, as the store is the rest of that queue.
func (g *group) livenessTimeout(i int) time.Duration {
	d := g.deadAfterOf(i)
	if g.live.deadAfterMax > d {
		r := livenessProbes * (g.activity[i].recovery.rtt + 4*g.activity[i].recovery.rttVar)
		if r == 0 || r > g.live.deadAfterMax {
			r = g.live.deadAfterMax // also before the first measurement
		}
		d = max(d, r)
	}
	delay := g.sw.ports.port(g.legs[i].port).txDelay
	if g.acks[i].flags&recovering != 0 {
		delay *= 2
	}
	return d + delay
}
