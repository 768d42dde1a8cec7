// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// failure is the fatal NAK that the source of a failed group gets. group.failed says that
// the group has failed: it forwards nothing and acknowledges nothing more, its store is
// empty, and no timer of it runs.
type failure struct {
	psn      rocev2.PSN      // the source's packet with this PSN is answered with the NAK
	syndrome rocev2.Syndrome // 0: no NAK was sent
}

// fatalSent acts on a fatal NAK that was sent to the source. A receiver's NAK ends the
// group. The switch's own NAK ends the source's queue pair only: nothing reached a
// receiver, and another member may send.
func (g *group) fatalSent(from int, code rocev2.Syndrome, out *Output) {
	if from == none {
		if !g.turn.refusalReported {
			g.turn.refusalReported = true
			g.emitCause(out, SourceRefused, MemberID(g.src.member), g.agg.request.psn, code)
		}
		return
	}
	g.fail(g.legs[from].member, g.agg.request.psn, code, code, out)
}

// failBecauseOf fails the group because of member m: the source gets a fatal NAK of the
// first PSN that is not acknowledged, so what came before completes. The syndrome is why
// if that is the member's own fatal NAK, else remote operational error.
func (g *group) failBecauseOf(m MemberID, why rocev2.Syndrome, out *Output) {
	code := why
	if why.Kind() != rocev2.KindFatal {
		code = rocev2.SyndromeNAKOpErr
	}
	una := g.agg.acked.Next()
	g.agg.request = request{psn: una, severity: sevFatal}
	if una.Less(g.fwd.nxt) || g.is(blocking) {
		g.sendNAK(out, code, una)
	} // else the source has not sent una, and is answered when it does (R75)
	g.fail(m, una, code, why, out)
}

func (g *group) fail(m MemberID, psn rocev2.PSN, code, why rocev2.Syndrome, out *Output) {
	g.set(failed, true)
	g.failure = failure{psn, code}
	g.due.stop(livenessCheck)
	g.clearStore(g.fwd.nxt, out)
	g.emitEvent(out, Event{Kind: GroupFailed, Group: g.id, Member: m, PSN: psn, Syndrome: code, Cause: why})
	if g.src.member != none { // a source that is registered with too high a PSN begins in the middle of a message
		g.reportMismatch(MemberID(g.src.member), SendPSN, out)
	}
}

// evict removes leg i, whose receiver cannot go on.
func (g *group) evict(i int, why rocev2.Syndrome, out *Output) {
	a := g.acks[i].acked
	if g.acks[i].flags&isReceiver == 0 {
		a = g.fwd.nxt.Prev() // nothing that was forwarded is for it
	}
	for m := range g.members {
		if g.members[m].leg == LegID(i) && g.members[m].live {
			g.members[m].live = false
			g.emitCause(out, MemberEvicted, MemberID(m), a, why)
		}
	}
	g.legs[i].members = 0
	g.removeLeg(i)
	g.freeAfterEviction(out)
}
