// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A packet that is lost on the source's link leaves a gap before nxt. The fast path forwards nothing
// until the source has gone back to nxt. Packets behind the gap are of no use to any receiver: they
// are dropped, and the group stays offloaded (R103). The source goes back when it gets a NAK of nxt.
// That NAK acknowledges everything before nxt, so the receivers are asked for an ACK first, by the
// packet nxt - 1 with AckReq. A packet from behind the gap must not be used for that: if the missing
// packet is only late, a receiver would acknowledge a packet that was never forwarded (R54).

// behindGap serves a packet of the source behind a gap. It returns false if the packet is another
// one, for which the group is taken back. A source behind another switch sends only what was lost
// again, so its other packets are not dropped (R92).
func (g *group) behindGap(now time.Duration, p *Packet, f rocev2.OpFlags, out *Output) bool {
	psn := p.PSN & rocev2.PSNMask
	if d := psn.Sub(g.fwd.nxt); d <= 0 || int(d) >= g.extra.offload.spec.Slots || p.Neighbor != 0 || g.fwd.targets != nil || !g.mayStayOffloaded() {
		return false
	}
	if code, _ := g.checkRequest(p, f); code != 0 {
		return false
	}
	if g.is(lostNxt) {
		return true
	}
	if !p.Verified {
		out.NeedVerify = true
		return true
	}
	g.set(lostNxt, true)
	g.noteAckReq(now, g.fwd.nxt.Prev())
	g.askForLast(now, out)
	g.evaluate(out)
	return true
}

// askForLast sends the last packet before nxt once more, with AckReq, to the legs that are in sync and
// have not acknowledged it.
func (g *group) askForLast(now time.Duration, out *Output) {
	psn := g.fwd.nxt.Prev()
	e := g.repair.store.find(psn)
	if e == nil {
		return
	}
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&(isReceiver|recovering) != isReceiver || b.pending != sevNone || !b.acked.Less(psn) || out.resendsExhausted() {
			continue
		}
		if room, _ := g.roomFor(now, i, out); room != 0 {
			g.copyRetained(i, e, psn, true, out)
			g.noteProbe(now, i, psn)
		}
	}
}
