// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to change the source.
var _ = []mutant.Mutant{
	mutant.New("the source's feedback counts", "R15", mutant.In((*group).legOf,
		`case int32(i) == g.src.leg:
		return 0, FromSource`,
		"")),
	mutant.New("the first PSN is learnt from the first packet", "R16", mutant.In((*group).beginTurn,
		"learnt, first := g.openTurn(now, k, out), g.members[k].sqPSN",
		`$recv.$4[$arg2].$1 = $arg3.$2 & $3
	learnt, first := g.openTurn(now, k, out), g.members[k].sqPSN`, member{}.sqPSN, Packet{}.PSN, rocev2.PSNMask, group{}.members)),
	mutant.New("what precedes the first packet counts as acknowledged", "R16", mutant.In((*group).startTurn,
		"g.agg.acked, g.src.ackedCount = m.sqPSN.Prev(), m.ackedCount",
		"g.agg.acked, g.src.ackedCount = m.sqPSN, m.ackedCount")),
	mutant.New("a delayed duplicate makes the old source the current one", "R17", mutant.In((*group).requestOfNonSource,
		"d < 0 && !(g.tree() != nil && g.tree().knows(k) == positionMoved && !g.is(failed))",
		"d < 0 && !g.$1()", (*group).isQuiescent)),
	mutant.New("another source's feedback between switches counts", "R18", mutant.In((*group).legOf,
		"case p.Neighbor != 0 && rocev2.KeyOf(p.Src) != g.src.addr:",
		"case p.Neighbor != 0 && !p.Src.$1():", netip.Addr.IsValid)),
	mutant.New("a new source may be behind any switch", "R17", mutant.In((*group).requestOfNonSource,
		"if p.Neighbor != g.legs[m.leg].neighbor {",
		"if p.Neighbor > 100 {")),
	mutant.New("a receiver's queue is off by one after an epoch", "R18", mutant.In((*group).stopReceiving,
		"b.acked.Add(1 + int32(b.delta))",
		"b.acked.Add(int32(b.delta))")),
	mutant.New("a source begins again where it first began", "R18", mutant.In((*group).endTurn,
		"m.sqPSN, m.messages, m.ackedCount = g.fwd.nxt, g.agg.messages.completed, g.src.ackedCount",
		"m.messages, m.ackedCount = g.agg.messages.completed, g.src.ackedCount")),
	mutant.New("a source's MSN begins again", "R20", mutant.In((*group).startTurn,
		"g.agg.messages.reset(m.messages)",
		"g.agg.messages.reset(0)")),
	mutant.New("a rewound message end does not open its message", "R29", mutant.In((*group).noteForwarded,
		`if d == -1 {
			g.fwd.midMessage = !ends
		}`,
		"")),
	mutant.New("a delayed duplicate gets the current source's acked", "R29", mutant.In((*group).answerFormerSource,
		"PSN: m.sqPSN.Prev(), Syndrome: rocev2.SyndromeACK, MSN: g.msnTo(k, m.messages),",
		"PSN: $recv.$2.$1, Syndrome: rocev2.SyndromeACK, MSN: g.msnTo(k, m.messages),", aggregation{}.acked, group{}.agg)),
	mutant.New("a delayed duplicate's answer goes to the current source", "R29", mutant.In((*group).answerFormerSource,
		"Group: g.id, To: k, Op: rocev2.Acknowledge,",
		"Group: g.id, To: $1(g.$3.$2), Op: rocev2.Acknowledge,", MemberID(0), source{}.member, group{}.src)),
	mutant.New("an unverified packet changes the source", "R33", mutant.In((*group).requestOfNonSource,
		`if !p.Verified {
		out.NeedVerify = true
		return None
	}
	if !free`,
		"if !free")),
	mutant.New("a NAK of the old epoch silences the new one's", "R18", mutant.In((*group).startTurn,
		"g.agg.request, g.src.hasLastPSN, g.fwd.midMessage = request{}, false, false",
		"g.src.hasLastPSN, g.fwd.midMessage = false, false")),
	mutant.New("a packet after a gap is believed to be the next", "R64", mutant.In((*group).mayBeDamaged,
		"return !g.src.hasLastPSN || g.src.lastPSN != psn.Prev() || now-g.src.lastPSNAt",
		"return !g.src.hasLastPSN || now-g.src.lastPSNAt")),
	mutant.New("a source may stall for ever", "R65", mutant.In((*group).sourceTimedOut,
		"if now-g.turn.silentSince < g.turn.sourceTimeout {",
		"if now-g.turn.silentSince < 1000*g.turn.sourceTimeout {")),
	mutant.New("a source that sends is given up", "R65", mutant.In((*group).noteReceived,
		"g.src.lastPSN, g.src.lastPSNAt, g.src.hasLastPSN, g.turn.silentSince = psn, now, true, 0",
		"g.src.lastPSN, g.src.lastPSNAt, g.src.hasLastPSN = psn, now, true")),
	mutant.New("the next source begins inside a message", "R65", mutant.In((*group).abandonSource,
		"if g.fwd.midMessage || complete < g.policy.minReceivers {",
		`g.fwd.midMessage = false
	if complete < g.policy.minReceivers {`)),
	mutant.New("a stalled source's receivers are removed under any policy", "R65", mutant.In((*group).abandonSource,
		"if g.fwd.midMessage || complete < g.policy.minReceivers {",
		"if g.fwd.midMessage || complete < 1 {")),
	mutant.New("a receiver that lacks something stays without its source", "R65", mutant.In((*group).abandonSource,
		`		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(last) {
			g.evict(i, Stranded, out)`,
		`		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(last) {
			g.acks[i].acked = last`)),
	mutant.New("anything of another member is a request to send", "R65", mutant.In((*group).requestOfNonSource,
		"if !free && psn != m.sqPSN {",
		"if !free && false {")),
	mutant.New("who waits for its turn hears nothing", "R66", mutant.In((*group).deferSource,
		`m := &g.members[k]
	g.counters.FeedbackOut++`,
		`m := &g.members[k]
	if m.$1 {
		return
	}
	g.counters.FeedbackOut++`, member{}.live)),
	mutant.New("an ONLY may have fewer bytes than it says", "R67", mutant.In((*group).lengthAgrees,
		"return p.DMALen == uint32(p.Payload)",
		"return p.DMALen >= uint32(p.Payload)")),
	mutant.New("a LAST may have more or fewer than what is left", "R67", mutant.In((*group).lengthAgrees,
		"return left == int64(p.Payload)",
		"return left > 0")),
	mutant.New("a MIDDLE may leave nothing", "R67", mutant.In((*group).lengthAgrees,
		"return left > int64(p.Payload)",
		"return left > 0")),
	mutant.New("the length of a damaged FIRST stays", "R67", mutant.In((*group).noteMessageStart,
		`if !g.fwd.writeMessage.known || psn != g.fwd.writeMessage.first || write == g.fwd.writeMessage {
			return // a later message may have begun unseen
		}
		if g.fwd.writeMessage = write; psn.Less(g.refusal.psn) {
			g.setRefusal(refusal{}) // by what it seemed to say
		}`,
		"return")),
	mutant.New("what a damaged FIRST had refused stays refused", "R67", mutant.In((*group).noteMessageStart,
		"g.setRefusal(refusal{})",
		"g.$3.$1.$2 = true", forwarding{}.writeMessage, writeMessage{}.known, group{}.fwd)),
	mutant.New("a LAST after a gap is judged by an earlier FIRST", "R67", mutant.In((*group).noteMessageStart,
		`default:
		g.fwd.writeMessage.known = false`,
		`default:
		g.fwd.writeMessage.known = g.fwd.writeMessage.known || false`), mutant.In((*group).lengthAgrees,
		"before <= 0 || g.fwd.nxt.Less(psn) {",
		"before <= 0 {")),
}
