// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to deal with members that fail, come and go.
var _ = []mutant.Mutant{
	mutant.New("a slow member that speaks is evicted", "R23", mutant.In((*group).silence,
		"now - max(l.livenessSince, l.lastHeard)",
		"now - l.livenessSince")),
	mutant.New("silence of all evicts all", "R23", mutant.In((*group).checkLiveness,
		`alive := false
	best := g.agg.acked`,
		`alive := true
	best := g.agg.acked`)),
	mutant.New("silence counts while the source waits out an RNR timer", "R23", mutant.In((*group).checkLiveness,
		"if g.agg.request.awaits(g.agg.acked.Next()) {",
		"if false {")),
	mutant.New("the time for an answer begins before the source is back", "R23", mutant.In((*group).noteServed,
		"if g.live.deadAfter != 0 && g.agg.request.awaits(psn) {",
		"if false {")),
	mutant.New("silent members are kept for ever", "R23", mutant.In((*group).checkLiveness,
		"case alive && !g.isKept(i) && g.wasAsked(i):",
		"case false && alive && !g.isKept(i) && g.wasAsked(i):")),
	mutant.New("silence of the last packets is not noticed", "R23", mutant.In((*group).checkLiveness,
		"case alive && !g.isKept(i) && g.wasAsked(i):",
		"case alive && g.wasAsked(i) && g.$2[i].$1 != g.$3.$4:", ackState{}.acked, group{}.acks, group{}.agg, aggregation{}.acked)),
	mutant.New("a fatal NAK is not repeated to the source", "R25", mutant.In((*group).stop,
		"if psn == g.failure.psn && g.failure.syndrome != 0 {",
		"if psn == g.failure.psn.$1() {", rocev2.PSN.Prev)),
	mutant.New("a failed group takes feedback", "R25", mutant.In((*group).handleFeedback,
		`if g.is(failed) {
		return FailedGroup
	}`,
		"")),
	mutant.New("fatal NAKs become sequence NAKs", "R25", mutant.In(severityOf,
		`	}
	return sevFatal`,
		`	}
	return $1`, sevSequence)),
	mutant.New("the last receiver is evicted", "R26", mutant.In((*group).setPolicy,
		`case Evict:
		g.policy.minReceivers = 1`,
		`case Evict:
		g.policy.minReceivers = 0`)),
	mutant.New("strict groups evict", "R26", mutant.In((*group).setPolicy,
		`g.policy.minReceivers = math.MaxInt32
	case Evict:`,
		`g.policy.minReceivers = math.MaxInt32 >> 62
	case Evict:`)),
	mutant.New("an eviction is not evaluated", "R03", mutant.In((*group).evaluate,
		`g.evict(who, code, out)
			continue`,
		`g.evict(who, code, out)
			return`)),
	mutant.New("members join inside a message", "R30", mutant.In((*group).handleData,
		"if !starts {\n\t\tshut &^= joiners\n\t}",
		""), mutant.In((*group).stop,
		"g.mustBlock(now, psn, p.Op.Is(rocev2.OpStart), out)",
		"g.mustBlock(now, psn, true, out)")),
	mutant.New("members join at a retransmission", "R30", mutant.In((*group).handleData,
		"if !inOrder {\n\t\tif r := g.stop(now, p, psn,",
		"if psn.$7(g.$4.$5) && $arg3&$6 != 0 && g.$3.$1 > 0 {\n\t\tg.$2(psn)\n\t}\n\tif !inOrder {\n\t\tif r := g.stop(now, p, psn,", receivers{}.joining, (*group).admitJoining, group{}.recv, group{}.fwd, forwarding{}.nxt, rocev2.OpStart, rocev2.PSN.Less)),
	mutant.New("members join at once", "R30", mutant.In((*group).joinAtNextMessage,
		"g.setJoining(int(i), g.src.member != none || g.is(learning) && !l.connected())",
		`if g.src.member != none {
			g.$1(int(i), g.$3.$2)
		}`, (*group).startReceiving, forwarding{}.nxt, group{}.fwd)),
	mutant.New("a joiner's first packet counts as acknowledged", "R30", mutant.In((*group).startReceiving,
		`b.acked = psn.Prev()
	b.flags |= isReceiver`,
		`b.acked = psn
	b.flags |= isReceiver`)),
	mutant.New("a joiner without a verified packet", "R33", mutant.In((*group).handleData,
		"inOrder := psn == g.fwd.nxt && shut == 0 &&",
		"inOrder := psn == g.fwd.nxt && shut&^$1 == 0 &&", joiners), mutant.In((*group).handleData,
		"if !inOrder {\n\t\tif r := g",
		"if !inOrder || $1 {\n\t\tif r := g", true)),
	mutant.New("a member that leaves is still waited for", "R31", mutant.In((*group).afterRemoval,
		`return
	}
	g.evaluate(out)
}`,
		`}
}`)),
	mutant.New("a leaving member leaves its NAK", "R31", mutant.In((*group).stopReceiving,
		`g.setPending(b, sevNone, 0)
	g.deliver(i, stopped)
	g.setReceivers(g.recv.count - 1)`,
		"g.setReceivers(g.recv.count - 1)")),
	mutant.New("a leaving member takes its switch's others along", "R31", mutant.In((*group).removeMember,
		`case l.members == 0:
		g.removeLeg(int(m.leg))`,
		`case l.members < 3:
		g.removeLeg(int(m.leg))`)),
	mutant.New("a source may leave with data in flight", "R31", mutant.In((*group).sourceRemoved,
		`if g.fwd.midMessage || g.is(unplaced) || !g.allCaughtUp() {
		g.fail(`,
		`if g.fwd.midMessage {
		g.fail(`)),
	mutant.New("data of one who is no member is forwarded", "C57", mutant.In((*group).handleRequest,
		"if g.src.member != none && rocev2.KeyOf(p.Src) == g.src.addr && p.Neighbor == g.src.neighbor {",
		"if g.src.member != none && p.Neighbor == g.src.neighbor {")),
	mutant.New("a removed address shadows those behind it in the table", "R21", mutant.In((*addrIndex[uint16]).remove,
		"t.slots[i], i = t.slots[j], j",
		"break")),
}
