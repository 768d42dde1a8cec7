// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Selective NAKs (R106). A switch that finds a gap in what comes from the switch above names
// the missing packets to it at once. Such a NAK acknowledges nothing, so it waits for no
// receiver, and each of several gaps has its own.
//
// It is an Acknowledge packet with a syndrome that IBTA reserves. Its PSN is that of the first
// missing packet, and the packet behind the last one has just come: links between switches
// keep the order, so a packet that the switch above has sent again after that one is still on
// its way. Nothing is stored of a selective NAK, and it is not repeated: if it is lost, or what
// it is for, the receivers' own NAKs bring the packets (R92).

const (
	selectiveNAK = rocev2.Syndrome(0x40) // | number of missing packets
	maxMissing   = 0x1F                  // missing packets that a selective NAK may name
)

// isSelectiveNAK reports whether p is a selective NAK of another switch.
func isSelectiveNAK(p *Packet) bool {
	return p.Neighbor != 0 && p.Syndrome&^maxMissing == selectiveNAK && p.Syndrome != selectiveNAK
}

// nakGap sends the switch above a selective NAK of the packets from nxt to psn-1. psn has come,
// and is retained. A longer gap is no loss on a link, and is requested as R92 says.
func (g *group) nakGap(psn rocev2.PSN, out *Output) {
	if n := psn.Sub(g.fwd.nxt); n <= maxMissing && g.src.neighbor != 0 {
		g.sendNAK(out, selectiveNAK|rocev2.Syndrome(n), g.fwd.nxt)
	}
}

// selectiveNAKReceived sends leg i, to another switch, the retained ones of the packets that its
// selective NAK names. What is not retained goes to it when it comes (R92).
func (g *group) selectiveNAKReceived(now time.Duration, i int, p *Packet, out *Output) Reason {
	psn := p.PSN & rocev2.PSNMask
	next := psn.Add(int32(p.Syndrome & maxMissing)) // the packet that had come
	if g.fwd.nxt.LessEq(next) {
		return FeedbackAhead
	}
	if next.Sub(g.agg.acked) < -maxBehind {
		return PSNOutOfRange
	}
	g.applyPauses(i)
	if g.live.deadAfter != 0 {
		g.activity[i].lastHeard = now
	}
	if p.BECN {
		g.noteBECN(now, i)
	}
	b, m := &g.acks[i], &g.activity[i].recovery
	if next.LessEq(b.acked) || g.repair.store == nil || m.escalated {
		return FeedbackStale
	}
	m.lossAt = now
	g.costNAK(i, sevSequence, psn)
	room, _ := g.roomFor(now, i, out)
	for q := rocev2.MaxPSN(psn, b.acked.Next()); q.Less(next) && room > 0 && !out.resendsExhausted(); q = q.Next() {
		e := g.repair.store.find(q)
		switch {
		case e == nil, next.Less(e.passedAt):
			continue // it will pass, or has passed behind next
		case m.state != inSync && m.cursor.LessEq(q) && (m.inBurst(q) || m.firstUnsent.LessEq(q)):
			continue // the cursor comes to it
		}
		room--
		m.resentPSN = rocev2.MaxPSN(m.resentPSN, q)
		g.cost.legs[i].repaired++
		g.copyRetained(i, e, q, false, out)
	}
	return None
}
