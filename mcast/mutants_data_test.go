// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to forward data.
var _ = []mutant.Mutant{
	mutant.New("duplicates go to everybody again", "R12", mutant.In((*group).answerDuplicate,
		`g.live.sourceRewound = true
	if p.AckReq || rewind {`,
		`g.live.sourceRewound = true
	for i := range g.$1 {
		if g.$1[i].$10&$2 != 0 {
			$arg4.$3 = append($arg4.$3, $4{$11: g.$5, $12: $6(i), $7: p.$13, $14: $arg3.$8(int32(g.$1[i].$9))})
		}
	}
	if p.AckReq || rewind {`,
		group{}.acks, isReceiver, Output{}.Copies, Copy{}, group{}.id, LegID(0), Copy{}.Frame, rocev2.PSN.Add, ackState{}.delta, ackState{}.flags,
		Copy{}.Group, Copy{}.Leg, Packet{}.Frame, Copy{}.PSN)),
	mutant.New("data goes to legs that have it", "R12", mutant.In((*group).forward,
		`if d <= 0 {
			continue
		}`,
		"")),
	mutant.New("a rewind is not answered unless it asks", "R12", mutant.In((*group).answerDuplicate,
		"if p.AckReq || rewind {",
		"if p.AckReq || rewind && p.AckReq {")),
	mutant.New("a duplicate that asks is not answered", "R13", mutant.In((*group).answerDuplicate,
		"if p.AckReq || rewind {",
		"if rewind {")),
	mutant.New("every duplicate is answered", "R12", mutant.In((*group).answerDuplicate,
		"if p.AckReq || rewind {",
		"if p.AckReq || rewind || !rewind {")),
	mutant.New("the source gets its own packets", "R15", mutant.In((*group).forward,
		`if b.flags&isReceiver == 0 {
			continue
		}
		d := psn.Sub(b.acked)`,
		"d := psn.Sub(b.acked)")),
	mutant.New("PSNs toward members are not translated", "R18", mutant.In((*group).forward,
		"PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"PSN: psn}")),
	mutant.New("translated PSNs have 25 bits", "R18", mutant.In((*group).forward,
		"PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask}",
		"PSN: psn + rocev2.PSN(b.delta)}")),
	mutant.New("feedback PSNs are not translated back", "R18", mutant.In((*group).handleFeedback,
		"psn := (p.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask",
		"psn := p.PSN & rocev2.PSNMask")),
	mutant.New("PSNs are translated toward switches", "R24", mutant.In((*group).startReceiving,
		`if l.connected() {
		b.delta =`,
		`if l.$1 > 0 {
		b.delta =`, leg{}.members)),
	mutant.New("VA is the window's base for every WRITE", "R27", mutant.In((*group).forward,
		"l.base+(p.VA-g.fwd.window.Base)",
		"l.base")),
	mutant.New("the end of a WRITE overflows its window", "R27", mutant.In((*group).inWindow,
		"p.VA >= g.fwd.window.Base && off <= g.fwd.window.Len && uint64(p.DMALen) <= g.fwd.window.Len-off",
		"p.VA >= g.fwd.window.Base && off <= off && p.VA+uint64(p.DMALen) <= g.fwd.window.Base+g.fwd.window.Len")),
	mutant.New("a WRITE may begin below the window", "R27", mutant.In((*group).inWindow,
		"p.VA >= g.fwd.window.Base && off <= g.fwd.window.Len && uint64(p.DMALen) <= g.fwd.window.Len-off",
		"off <= off && p.VA+uint64(p.DMALen) <= g.fwd.window.Base+g.fwd.window.Len")),
	mutant.New("only the beginning of a WRITE is checked", "R27", mutant.In((*group).inWindow,
		"off <= g.fwd.window.Len && uint64(p.DMALen) <= g.fwd.window.Len-off",
		"off < g.fwd.window.Len")),
	mutant.New("a WRITE is checked by its packet's length", "R27", mutant.In((*group).inWindow,
		"uint64(p.DMALen) <= g.fwd.window.Len-off",
		"uint64(p.$1) <= g.fwd.window.Len-off", Packet{}.Payload)),
	mutant.New("a WRITE of no bytes must be in the window", "R27", mutant.In((*group).inWindow,
		`if p.DMALen == 0 {
		return true
	}`,
		"")),
	mutant.New("READs are forwarded", "R28", mutant.In((*group).checkRequest,
		"case f&(rocev2.OpSend|rocev2.OpWrite) == 0:",
		"case f&(rocev2.OpSend|rocev2.OpWrite|rocev2.$1) == 0:", rocev2.OpRequest)),
	mutant.New("short middles of messages are forwarded", "R28", mutant.In(lengthFits,
		"return payload == pmtu",
		"return payload <= pmtu")),
	mutant.New("what is refused is forwarded all the same", "R28", mutant.In((*group).refuse,
		"return r.reason",
		"return $1", None)),
	mutant.New("what follows a refused packet is forwarded", "R28", mutant.In((*group).stop,
		"case g.is(refused) && g.refusal.psn.Less(psn):",
		"case g.is(refused) && psn.Less(g.refusal.psn):")),
	mutant.New("the switch's own refusal ends the group", "R28", mutant.In((*group).fatalSent,
		"if from == none {",
		`if from == none {
		$recv.$1($2($recv.$5.$3), $recv.$6.$4.$7, $arg2, $arg2, $arg3)`, (*group).fail, MemberID(0), source{}.member, aggregation{}.request, group{}.src, group{}.agg, request{}.psn)),
	mutant.New("a refusal is believed unverified", "R33", mutant.In((*group).handleData,
		"shut == 0 && code == 0 && !update\n\tif !p.Verified && (!inOrder ||",
		"shut == 0 && code == 0 && !update\n\tif !p.Verified && (!inOrder && code == 0 ||")),
	mutant.New("a WRITE stays refused when its update has come", "R41", mutant.In((*group).noteTargets,
		"if g.is(refused) && psn.Less(g.refusal.psn) {",
		"if g.is(refused) && psn == g.refusal.psn {")),
	mutant.New("updates out of order are kept in the order of their coming", "R41", mutant.In((*targets).insert,
		"for i > 0 && psn.Less(t.at(i-1).psn) {",
		"for i > 0 && psn == t.at(i-1).psn.$1().$1() {", rocev2.PSN.Prev)),
	mutant.New("another source's targets are used", "R41", mutant.In((*group).startTurn,
		`g.fwd.targets.reset()
	}`,
		`g.fwd.targets.$1(g.$3.$2)
	}`, (*targets).fold, aggregation{}.acked, group{}.agg)),
}
