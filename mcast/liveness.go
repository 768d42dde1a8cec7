// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// liveness is the check for receivers that are silent. It is armed whenever data is in
// flight and period is set.
type liveness struct {
	deadAfter     time.Duration `state:"constant"` // the time that a receiver may be silent; 0: any time
	deadAfterMax  time.Duration `state:"constant"` // bound, if above deadAfter, of a timeout that follows the round trips
	period        time.Duration `state:"constant"` // time between two checks; 0: neither deadAfter nor a lag limit in time is set
	sourceRewound bool          `state:"encoded"`  // the source has retransmitted since the last check
	allDeadMS     uint32        `state:"constant"` // allDeadAfter in ms
}

// livenessChecks is the number of checks in each deadAfter. A receiver's silence is counted from
// the first check after the data that it does not acknowledge (R110).
const livenessChecks = 8

// startLiveness arms the liveness check: within deadAfter every receiver has to
// acknowledge what has been forwarded by now, or to send any feedback.
func (g *group) startLiveness(now time.Duration) {
	g.applyAllPauses()
	for i := range g.acks {
		l := &g.activity[i]
		l.livenessPSN, l.livenessSince, l.lastHeard = g.fwd.nxt.Prev(), now, 0 // nothing before now counts
		l.lagPSN, l.lagSince = g.acks[i].acked, now
	}
	g.due.arm(livenessCheck, now+g.live.period)
	g.live.sourceRewound = false
}

// checkLiveness gives up receivers that have been silent for deadAfter while they lag
// and others are ahead of them, or the source is retransmitting: they are removed, or
// the group fails (judge). While no receiver at all shows a sign of life the fault is
// more likely on this side: nobody is removed then, and after allDeadAfter the group fails. It
// also removes receivers that lag for longer than lagTime.
func (g *group) checkLiveness(now time.Duration, out *Output) {
	g.due.stop(livenessCheck)
	if g.agg.acked == g.fwd.nxt.Prev() && (g.policy.quorum == 0 || g.allCaughtUp()) {
		return // nothing in flight; the next packet arms the check anew
	}
	g.applyAllPauses()
	if g.agg.request.awaits(g.agg.acked.Next()) {
		g.restartLiveness(now) // receivers have nothing to answer
	}
	alive := false
	best := g.agg.acked
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		if g.showsLife(i, now) {
			alive = true
		}
		if best.Less(b.acked) {
			best = b.acked
		}
	}
	next := now + g.live.period
	allDead := !alive && !g.isAnySpared(now)
	evicted := false
	for i := range g.acks {
		b, l := &g.acks[i], &g.activity[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		switch {
		case g.exceedsLagTime(i, now, best) && g.judge(i, Lagging, out):
			evicted = true
		case g.isUnserved(i, now):
			g.judge(i, Stranded, out)
			evicted = true
		case !g.isSilent(i, now):
			if !b.acked.Less(l.livenessPSN) { // has acknowledged livenessPSN in time; a new period begins
				l.livenessPSN, l.livenessSince = g.fwd.nxt.Prev(), now
			}
			if g.live.deadAfter > 0 {
				next = min(next, max(l.livenessSince, l.lastHeard)+g.livenessTimeout(i))
			}
		case alive && !g.isKept(i) && g.wasAsked(i):
			g.judge(i, Silent, out)
			evicted = true
		case allDead && g.isAllDead(g.silence(i, now)) && b.acked.LessEq(g.agg.acked) && g.wasAsked(i):
			if g.servesOthers() {
				g.evict(i, Silent, out)
				evicted = true
			} else {
				g.failBecauseOf(g.legs[i].member, Silent, out)
			}
		}
		if g.is(failed) {
			return
		}
	}
	g.due.arm(livenessCheck, next)
	g.live.sourceRewound = false
	if g.repair.store != nil {
		g.noteAckReq(now, g.fwd.nxt.Prev()) // a receiver that has not acknowledged that packet is asked (R45)
	}
	if evicted {
		g.evaluate(out)
	}
}

// restartLiveness lets the time that each receiver has for an answer begin now.
func (g *group) restartLiveness(now time.Duration) {
	g.applyAllPauses()
	for i := range g.activity {
		g.activity[i].livenessSince = now
	}
}

// isSilent reports whether leg i owes an acknowledgement and has sent no feedback for
// deadAfter.
func (g *group) isSilent(i int, now time.Duration) bool {
	return g.live.deadAfter > 0 && g.acks[i].acked.Less(g.activity[i].livenessPSN) && g.silence(i, now) >= g.livenessTimeout(i)
}

// silence returns for how long leg i has sent no feedback in its present period.
func (g *group) silence(i int, now time.Duration) time.Duration {
	l := &g.activity[i]
	return now - max(l.livenessSince, l.lastHeard)
}

// isAllDead reports whether a receiver has been silent for long enough to be given up although no other one shows life.
func (g *group) isAllDead(silent time.Duration) bool {
	return g.givesUpAll() && silent >= g.live.allDeadAfter()
}

// givesUpAll reports whether the switch decides about receivers none of which shows life. Under policies that can do
// without some, the switch of the source does, and the root: another one does not know whether receivers elsewhere live.
func (g *group) givesUpAll() bool {
	return g.live.allDeadMS > 0 && (g.policy.kind == Strict || g.src.neighbor == 0 || g.isRoot())
}

// isAnySpared reports whether the group can do without its dead receivers for the sake of another one, which
// is kept (R108), or has not been silent for allDeadAfter.
func (g *group) isAnySpared(now time.Duration) bool {
	for i := range g.acks {
		if g.policy.kind != Strict && g.acks[i].flags&isReceiver != 0 && (g.isKept(i) || !g.isAllDead(g.silence(i, now))) {
			return true
		}
	}
	return false
}

// allDeadAfter returns the time after which the group fails if all receivers are silent; 0: never.
func (l *liveness) allDeadAfter() time.Duration { return time.Duration(l.allDeadMS) * time.Millisecond }

// setAllDeadAfter sets it, in whole milliseconds.
func (l *liveness) setAllDeadAfter(d time.Duration) {
	l.allDeadMS = uint32(min((d+time.Millisecond-1)/time.Millisecond, math.MaxUint32))
}

// wasAsked reports whether leg i owes an answer to more than what it was sent first: the source has
// sent again, or another receiver is ahead. Without a store the switch asks nobody, so under Strict,
// where a source that pauses must not cost the group, the source has to have asked.
func (g *group) wasAsked(i int) bool {
	return g.live.sourceRewound || g.isBehind(i) && (g.repair.store != nil || g.policy.kind != Strict)
}

// showsLife reports whether leg i has acknowledged livenessPSN, or has sent feedback within the
// last half of its liveness timeout. Receivers that a common fault silences become silent one
// after the other, so the last of them is no evidence against the first (R110).
func (g *group) showsLife(i int, now time.Duration) bool {
	l := &g.activity[i]
	return g.live.deadAfter == 0 || !g.acks[i].acked.Less(l.livenessPSN) || now-max(l.livenessSince, l.lastHeard) < g.livenessTimeout(i)/2
}

// isProbe reports whether p, which the switch above has sent again or which was not served, is
// answered: that switch hears by the answer that this one lives, and some receiver behind it. If none
// does, the switch above decides about all of them (R57).
func (g *group) isProbe(now time.Duration, p *Packet, out *Output) bool {
	if g.live.deadAfter == 0 || p.Neighbor == 0 || !p.AckReq || !p.Verified || g.is(failed) || out.NeedRevoke || len(out.Feedback) != 0 {
		return false
	}
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 && g.showsLife(i, now) {
			return true
		}
	}
	return false
}

// isUnserved reports whether leg i, behind a quorum, has had a pending NAK for deadAfter
// in vain. Its receiver may send the NAK again and again, so it need not be silent.
func (g *group) isUnserved(i int, now time.Duration) bool {
	b, l := &g.acks[i], &g.activity[i]
	return g.live.deadAfter > 0 && b.pending != sevNone && b.acked.Less(g.agg.acked) && b.acked.Less(l.livenessPSN) && now-l.livenessSince >= g.livenessTimeout(i)
}

// isBehind reports whether some receiver is ahead of leg i.
func (g *group) isBehind(i int) bool {
	for j := range g.acks {
		if g.acks[j].flags&isReceiver != 0 && g.acks[i].acked.Less(g.acks[j].acked) {
			return true
		}
	}
	return false
}

// lagLimit is how far a receiver may be behind another one (R38). No receiver is further
// behind floor+psns than its limit, if psns is set.
type lagLimit struct {
	psns  int32         `state:"constant"`              // limit in PSNs of a connected leg; 0: none
	floor rocev2.PSN    `state:"encoded if x.psns > 0"` // a lower bound, so that the legs are scanned rarely
	time  time.Duration `state:"constant"`              // limit in time of a connected leg; 0: none
}

// lagPSNsOf returns the limit in PSNs of leg i: doubled with each level of switches behind it,
// within what circular comparisons allow (R93).
func (g *group) lagPSNsOf(i int) int32 {
	return int32(min(int64(g.lag.psns)<<g.levelsBehind(i), maxBehind))
}

// lagTimeOf returns the limit in time of leg i, doubled likewise.
func (g *group) lagTimeOf(i int) time.Duration {
	return min(g.lag.time, math.MaxInt64>>(maxLevels+1)) << g.levelsBehind(i)
}

// evictLaggards evicts the receivers that are further behind best, which another receiver
// has, than their limit (R38). It is called when best is more than lag.psns above
// lag.floor, and makes that exact, so that the scans are rare.
func (g *group) evictLaggards(best rocev2.PSN, out *Output) {
	least := best
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		if best.Sub(b.acked) <= g.lagPSNsOf(i) || !g.judge(i, Lagging, out) {
			least = rocev2.MinPSN(least, b.acked.Add(g.lagPSNsOf(i)-g.lag.psns))
		}
	}
	g.lag.floor = least
}

// exceedsLagTime reports whether leg i still lacks what another receiver had lagTimeOf ago.
// best is the highest acked of all receivers.
func (g *group) exceedsLagTime(i int, now time.Duration, best rocev2.PSN) bool {
	l := &g.activity[i]
	if g.lag.time == 0 {
		return false
	}
	if !g.acks[i].acked.Less(l.lagPSN) {
		l.lagPSN, l.lagSince = best, now
	}
	return g.acks[i].acked.Less(l.lagPSN) && now-l.lagSince >= g.lagTimeOf(i)
}

// Times that do not count as a receiver's silence: the switch's pauses, in which it did
// not receive from the port (R58), and the wait of a copy on this side of the link (R59).

// maxTXDelay bounds the delay that SetPortDelay accepts for a port.
const maxTXDelay = 10 * time.Second

// portTimes has the pauses and delays of the ports, as the driver reports them, for all
// groups of a switch.
type portTimes struct {
	ports  []portTime // the ports' times, by Port; a port beyond the end has neither pauses nor delay
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
