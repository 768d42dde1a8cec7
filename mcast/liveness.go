// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// startLiveness arms the liveness check: within deadAfter every receiver has to
// acknowledge what has been forwarded by now, or to send any feedback.
func (g *group) startLiveness(now time.Duration) {
	g.applyAllPauses()
	for i := range g.acks {
		l := &g.activity[i]
		l.livenessPSN, l.livenessSince = g.nxt.Prev(), now
		l.lagPSN, l.lagSince = g.acks[i].acked, now
	}
	g.livenessArmed, g.livenessAt, g.sourceRewound = true, now+g.livenessPeriod, false
}

// checkLiveness gives up receivers that have been silent for deadAfter while they lag
// and others are ahead of them, or the source is retransmitting: they are removed, or
// the group fails (removeOrFail). It gives up nobody while no receiver at all shows a
// sign of life: the fault is more likely on this side then, and the source's own timeout
// decides. It also removes receivers that lag for longer than lagTime.
func (g *group) checkLiveness(now time.Duration, out *Output) {
	g.livenessArmed = false
	if g.acked == g.nxt.Prev() && (g.quorum == 0 || g.allCaughtUp()) {
		return // nothing in flight; the next packet arms the check anew
	}
	g.applyAllPauses()
	if g.sourceOwes() {
		g.restartLiveness(now)
	}
	alive := false
	best := g.acked
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		if !g.isSilent(i, now) {
			alive = true
		}
		if best.Less(b.acked) {
			best = b.acked
		}
	}
	g.livenessAt = now + g.livenessPeriod
	evicted := false
	for i := range g.acks {
		b, l := &g.acks[i], &g.activity[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		switch {
		case g.exceedsLagTime(i, now, best):
			g.evict(i, Lagging, out)
			evicted = true
		case g.isUnserved(i, now):
			g.removeOrFail(i, Stranded, out)
			evicted = true
		case !g.isSilent(i, now):
			if !b.acked.Less(l.livenessPSN) { // has acknowledged livenessPSN in time; a new period begins
				l.livenessPSN, l.livenessSince = g.nxt.Prev(), now
			}
			if t := max(l.livenessSince, l.lastHeard) + g.livenessTimeout(i); g.deadAfter > 0 && t < g.livenessAt {
				g.livenessAt = t
			}
		case alive && (g.sourceRewound || g.isBehind(i)):
			g.removeOrFail(i, Silent, out)
			evicted = true
		}
		if g.failed {
			return
		}
	}
	g.livenessArmed, g.sourceRewound = true, false
	if evicted {
		g.evaluate(out)
	}
}

// sourceOwes reports whether the source was sent a NAK of acked+1 and has not sent that
// PSN since: it waits out an RNR timer, or the NAK was lost. Receivers have nothing to
// answer then, so no receiver's silence counts.
func (g *group) sourceOwes() bool {
	return g.nakSeverity != sevNone && !g.nakServed && g.nakPSN == g.acked.Next()
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
	l := &g.activity[i]
	return g.deadAfter > 0 && g.acks[i].acked.Less(l.livenessPSN) && now-max(l.livenessSince, l.lastHeard) >= g.livenessTimeout(i)
}

// isUnserved reports whether leg i, behind a quorum, has had a pending NAK for deadAfter
// in vain. Its receiver may send the NAK again and again, so it need not be silent.
func (g *group) isUnserved(i int, now time.Duration) bool {
	b, l := &g.acks[i], &g.activity[i]
	return g.deadAfter > 0 && b.pending != sevNone && b.acked.Less(g.acked) && b.acked.Less(l.livenessPSN) && now-l.livenessSince >= g.livenessTimeout(i)
}

// exceedsLagTime reports whether leg i still lacks what another receiver had lagTime ago,
// and the group can go on without it. best is the highest acked of all receivers.
func (g *group) exceedsLagTime(i int, now time.Duration, best rocev2.PSN) bool {
	l := &g.activity[i]
	if g.lagTime == 0 {
		return false
	}
	if !g.acks[i].acked.Less(l.lagPSN) {
		l.lagPSN, l.lagSince = best, now
	}
	return g.acks[i].acked.Less(l.lagPSN) && now-l.lagSince >= g.lagTime && g.canEvict(i)
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
