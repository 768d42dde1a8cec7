// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The policy Quorum: an ACK means that a quorum of the receivers has the data, so a
// receiver may be behind the group's acked (R36, R37).

// maxSourceFlight is how far acked may be beyond the PSN of a request before it is clear that the source
// does not send that again. It is more than the source had in flight when it got the
// NAK.
const maxSourceFlight = 1024

// quorumAcked returns the highest PSN up to which a quorum has all, and sets numAtAcked to
// the number of receivers that have no more or joined in flight.
func (g *group) quorumAcked() rocev2.PSN {
	n := 0
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|joinedInFlight) == isReceiver {
			g.sw.sortScratch[n] = b.acked.Sub(g.agg.acked)
			n++
		}
	}
	s := g.sw.sortScratch[:n]
	slices.Sort(s)
	at := n - int(g.policy.quorum)
	d := s[at]
	for at < n && s[at] == d {
		at++
	}
	g.agg.numAtAcked = int32(at) + g.recv.joinedInFlight
	return g.agg.acked.Add(d)
}

// numLacking returns how many receivers lack psn, which is acknowledged.
func (g *group) numLacking(psn rocev2.PSN) (n int) {
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(psn) {
			n++
		}
	}
	return n
}

// forwardAgain serves a packet that is acknowledged and that some receiver lacks: the
// source repeats it, so that receiver gets it.
func (g *group) forwardAgain(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) Reason {
	if code, _ := g.checkRequest(p, f); code != 0 || g.is(failed) {
		return g.answerDuplicate(now, p, psn, out)
	}
	if !p.Verified {
		out.NeedVerify = true
		return None
	}
	g.answerDuplicate(now, p, psn, out)
	g.counters.rare().RepeatedBytes += uint64(p.Payload)
	g.forward(now, p, psn, f, out)
	return None
}

// removeStranded gives up one receiver whose pending NAK is of a PSN that the source will
// not send again, because it is acknowledged. It reports whether there was one.
func (g *group) removeStranded(out *Output) bool {
	for i := range g.acks {
		b := &g.acks[i]
		if b.pending == sevNone || !b.acked.Less(g.agg.acked) {
			continue
		}
		if b.pending != sevFatal && g.expectedFromSource(b.acked.Next()) {
			continue
		}
		if b.pending == sevSequence && g.nakCrossesCopy(i, b.acked.Next()) {
			g.setPending(b, sevNone, 0)
			continue
		}
		code := Stranded
		if b.pending == sevFatal {
			code = b.pendingSyndrome
		}
		g.judge(i, code, out)
		return true
	}
	return false
}

// noteRepeat records that psn goes to the receiver again.
func (l *legActivity) noteRepeat(psn rocev2.PSN) {
	if !l.repeatedSinceNAK || psn.Less(l.repeatFirst) {
		l.repeatFirst = psn
	}
	l.repeatedSinceNAK, l.repeatLast = true, psn
}

// nakCrossesCopy reports whether NAK(e) of receiver i, of an acknowledged PSN, may have
// crossed a copy of the packet that it is for: it is the first NAK since that packet went
// to the receiver again (R74).
func (g *group) nakCrossesCopy(i int, e rocev2.PSN) bool {
	l := &g.activity[i]
	if !l.repeatedSinceNAK || e.Less(l.repeatFirst) || l.repeatLast.Less(e) || g.agg.acked.Less(e) {
		return false
	}
	l.repeatedSinceNAK = false
	return true
}

// expectedFromSource reports whether the source is likely to send e again: it was sent a
// NAK of e or of an earlier PSN and has not gone back yet, or it has gone back and is not
// yet past e. A switch above sends the packet that it was sent a NAK of, and perhaps nothing
// behind it (R92).
func (g *group) expectedFromSource(e rocev2.PSN) bool {
	r := &g.agg.request
	if g.src.neighbor != 0 {
		return r.awaits(e)
	}
	return r.isOpen() && r.psn.LessEq(e) || g.src.hasLastPSN && g.src.lastPSN.Less(e)
}

// evictBehind evicts the receivers that lack data that is acknowledged to the source,
// which leaves: nobody else could send it to them.
func (g *group) evictBehind(out *Output) {
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(g.agg.acked) {
			g.evict(i, Stranded, out)
		}
	}
}
