// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// forwarding is the part of a group that makes copies of the source's packets: which PSN is
// new, and what differs from member to member. Every PSN below nxt went to every receiver
// that lacked it, or was lost before the switch.
type forwarding struct {
	nxt              rocev2.PSN // the highest PSN forwarded, plus 1
	pmtu             uint16
	midMessage       bool     // the message of nxt-1 is not complete
	hasWindow        bool     // window is set
	numWithoutWindow int32    // receiving connected legs whose member has no window
	targetKey        uint32   // the R_Key of target messages
	targets          *targets // nil unless there is a targetKey
	window           Window   // what the source's WRITEs address
	writeMessage     writeMessage
	limit            rocev2.PSN // data from here on waits until newer positions are stored; unlimited: never
}

// forward makes the copies of p for the legs that lack it.
func (g *group) forward(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) {
	how := g.rewriteOf(p, f)
	again := psn.Less(g.fwd.nxt)
	if again && psn == g.rtt.psn {
		g.rtt.pending = false // an ACK may be of either passage
	}
	fresh := again && g.repair.store != nil && g.repair.store.find(psn) == nil
	if g.repair.store != nil && !g.is(noReceivers) && g.agg.acked.Less(psn) && !g.repair.store.retain(p, psn, g.fwd.nxt, g.agg.acked, how, out) {
		g.counters.rare().NotRetained++
	}
	n, served, drains := len(out.Copies), 0, !again && g.isDraining(now)
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		d := psn.Sub(b.acked)
		if d <= 0 {
			continue
		}
		ask := again && d == 1 && g.live.period != 0 // whoever decides on silence has asked (R57)
		if g.repair.store != nil && (b.flags&recovering != 0 || again && g.repair.store.bytes != 0) {
			var yes, probes bool
			if b.flags&isConnected != 0 {
				yes, probes = g.takesFromSource(now, i, psn)
			} else {
				yes, probes = g.switchTakes(now, i, psn, again, fresh)
			}
			if !yes {
				continue
			}
			ask = ask || probes
		} else if g.repair.path == fastPath {
			served++ // the fast path has sent it
			continue
		} else if drains && g.deferLeg(i, psn) {
			continue
		}
		// The copy is made in place: to move it costs as much as to make it.
		out.Copies = append(out.Copies, Copy{Group: g.id, Leg: LegID(i), Frame: p.Frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask})
		c := &out.Copies[len(out.Copies)-1]
		if how == rewriteByWindow && b.flags&isConnected != 0 { // the usual WRITE, without a call
			l := &g.legs[i]
			c.Flags, c.VA, c.RKey = SetRETH, l.base+(p.VA-g.fwd.window.Base), l.rkey
		} else if how != rewriteNone && b.flags&isConnected != 0 && !g.rewriteCopy(c, how, p.VA, psn) {
			out.Copies = out.Copies[:len(out.Copies)-1]
			continue
		}
		if ask && !p.AckReq {
			c.Flags |= SetAckReq
		}
		if again && g.policy.quorum != 0 {
			g.activity[i].noteRepeat(psn)
		}
		if d == 1 && b.pending != sevNone && b.pending != sevFatal {
			g.setPending(b, sevNone, 0) // this is the packet that the NAK is for
			g.activity[i].recovery.lossAt = now
			if g.repair.store != nil {
				g.armProbe(now, i)
			}
		}
	}
	if served != 0 {
		g.extra.offload.copies += uint64(served)
	}
	g.counters.Copies += uint64(len(out.Copies) - n + served)
}

// noteForwarded records that psn went out to the receivers.
func (g *group) noteForwarded(psn rocev2.PSN, f rocev2.OpFlags) {
	ends := f&rocev2.OpEnd != 0
	if psn != g.fwd.nxt {
		g.numbering.noteGap(psn, g.fwd.nxt)
		g.skipRetained()
	}
	switch d := psn.Sub(g.fwd.nxt); {
	case d >= 0:
		g.setNxt(psn.Next(), g.fwd.limit)
		g.fwd.midMessage = !ends
		if ends {
			g.agg.messages.addEnd(psn)
		}
	default:
		g.live.sourceRewound = true
		if d == -1 {
			g.fwd.midMessage = !ends
		}
		g.correctMessagesBefore(psn, g.agg.messages.correctEnd(psn, ends))
	}
}
