// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// gates are the conditions in which the source's new data is not just forwarded, as the bits of one
// word: for the usual packet it is 0. Each part of a group sets its own.
type gates uint32

const (
	failed         gates = 1 << iota // the group has failed (failure)
	frozen                           // the token is not where the source is: nothing of it is forwarded (R84)
	ending                           // the turn ends with the message under way (turn.endingSince)
	refused                          // a packet of the source is refused (refusal)
	unplaced                         // some leg is unplaced: acked is not known to be had behind it (R89)
	noReceivers                      // recv.count is 0
	holding                          // new data that waits is held (R96)
	awaitsFile                       // the source has sent data that waits until newer positions are stored
	blocked                          // a message waits for receivers to be verified
	joiners                          // recv.joining is not 0: the next message is the first of some receivers
	asking                           // a message waits no longer: the source is to be asked for it
	tooFew                           // fewer receivers than the quorum
	resumes                          // extra.resume is set
	learning                         // the time after a restart: what the receivers have is not known yet (R83)
	quarantined                      // nothing is acknowledged to the source before source.quarantinedUntil: it sent a PSN below all that its registration has seen
	wanted                           // others in the tree wait for the end of a turn at this switch
	messageRefused                   // the source has begun its next message, and was told to wait
	lostNxt                          // the source of an offloaded group goes on behind nxt, which was lost (R103)
	mayHold                          // receivers may hold packets beyond nxt from before a restart: the positions were not due since (R83)

	unstored // nxt is at forwarding.limit: data waits until newer positions are stored

	blocking = blocked | asking | holding                  // data waits, or is to be asked for
	requests = refused | asking | lostNxt | messageRefused // what the source may have to be told though no receiver has sent a NAK

	// stops are the gates by which a packet in order does not just pass, joiners those of a message's first one.
	stops = failed | frozen | ending | refused | noReceivers | blocking | tooFew | unstored | joiners
	// decides are the gates by which each packet needs a decision of the core.
	decides = stops&^unstored | unplaced | awaitsFile | resumes | quarantined | wanted
)

// is reports whether one of some gates is set.
func (b gates) is(some gates) bool { return b&some != 0 }

func (b *gates) set(some gates, yes bool) {
	*b &^= some
	if yes {
		*b |= some
	}
}

// stop returns why the source's packet psn, which is verified and no duplicate, does not pass; None if it does.
// The first gate that is shut to it decides. no is the refusal that it gets if it is one that no group can execute.
func (g *group) stop(now time.Duration, p *Packet, psn rocev2.PSN, no refusal, out *Output) Reason {
	fresh := !psn.Less(g.fwd.nxt)
	switch {
	case g.is(failed):
		if psn == g.failure.psn && g.failure.syndrome != 0 {
			g.sendNAK(out, g.failure.syndrome, psn)
		}
		return FailedGroup
	case g.is(frozen) && g.src.neighbor != 0:
		return NoToken
	case g.is(frozen) && !g.tree().request(now, MemberID(g.src.member), out): // the source's own switch asks for the token
		return g.tellToWait(now, psn, NoToken, out)
	case g.yields(now, p, psn):
		return g.tellToWait(now, psn, TurnOver, out)
	case g.is(refused) && g.refusal.psn.Less(psn):
		return g.refusal.reason // the source goes back to the refused PSN
	case g.is(refused) && g.refusal.psn == psn:
		g.setRefusal(refusal{})
	}
	switch {
	case no.syndrome != 0:
		return g.refuse(now, no, out)
	case g.is(noReceivers) && g.is(unplaced):
		return Resuming // there is nobody yet to whom it could go
	case g.is(noReceivers) && !g.is(joiners) && g.fwd.nxt.Less(psn):
		g.noteMismatch(MemberID(g.src.member), SendPSN, psn, g.fwd.nxt, out)
		return PSNOutOfRange // no receiver is there to send a NAK of the gap
	case g.is(holding) && fresh && !g.repair.store.held.serving:
		g.counters.DataIn++
		if g.is(awaitsFile) {
			return AwaitsStorage
		}
		return AwaitsVerification
	case g.fwd.nxt.Less(psn) && g.isRequested():
		g.recheckMismatch(psn, out)
		return AwaitsStorage // the source sends it once more, behind nxt
	case g.is(blocked|joiners|asking) && fresh && g.mustBlock(now, psn, p.Op.Is(rocev2.OpStart), out):
		return AwaitsVerification
	case !g.fwd.isDurable(psn):
		g.noteReceived(now, psn)
		g.set(awaitsFile, true)
		return AwaitsStorage
	case g.is(tooFew):
		return g.refuse(now, refusal{psn, rocev2.SyndromeNAKOpErr, QuorumLost}, out)
	}
	return None
}

// tellToWait has the source get an RNR NAK of what follows acked, when all that was forwarded is acknowledged.
func (g *group) tellToWait(now time.Duration, psn rocev2.PSN, why Reason, out *Output) Reason {
	g.noteReceived(now, psn)
	g.set(messageRefused, true)
	g.evaluate(out)
	return why
}

// refuse has the source get a fatal NAK, when all before its packet is acknowledged.
func (g *group) refuse(now time.Duration, r refusal, out *Output) Reason {
	g.noteReceived(now, r.psn)
	g.setRefusal(r)
	g.evaluate(out)
	return r.reason
}

// release opens a gate at which data has waited: the source is asked for it, unless it is held.
func (g *group) release(which gates) {
	g.set(which, false)
	g.set(asking, g.src.member != none && !g.is(holding))
}
