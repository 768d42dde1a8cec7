// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

// The invariants of a group's components. Every transcript, random run and fuzz run checks
// them after each call.

// checkInvariants recomputes the state that the group keeps incrementally.
func checkInvariants(t fatalReporter, g *group) {
	if g == nil {
		return
	}
	checkNumbering(t, g)
	checkTurn(t, g)
	checkTree(t, g)
	if g.src.member == none {
		return
	}
	checkSource(t, g)
	checkReceivers(t, g)
	checkForwarding(t, g)
	checkAggregation(t, g)
	checkLag(t, g)
	checkCongestion(t, g)
	checkStore(t, g)
}

// checkNumbering: numPending counts the legs that are not verified, and none of them
// receives. A gap is above acked.
func checkNumbering(t fatalReporter, g *group) {
	pending := int32(0)
	for i := range g.legs {
		if !g.unproven(i) {
			continue
		}
		pending++
		if g.legs[i].members == 0 || g.ackStateOf(i).flags&isReceiver != 0 {
			t.Fatalf("R52: leg %d of %d members is unverified, and receives: %v", i, g.legs[i].members, g.ackStateOf(i).flags&isReceiver != 0)
		}
	}
	if n := &g.numbering; n.gap && (!n.gapFrom.Less(n.gapNext) || g.src.member != none && g.policy.quorum == 0 && n.gapFrom.LessEq(g.agg.acked)) {
		t.Fatalf("R109: a gap from %06x to %06x, acked %06x", uint32(n.gapFrom), uint32(n.gapNext), uint32(g.agg.acked))
	}
	if pending != g.numbering.numPending {
		t.Fatalf("%d legs are unverified, numPending is %d", pending, g.numbering.numPending)
	}
}

// checkTurn: a turn is over, or drained, only while it is to end. The next member is the live
// member that has waited longest, and a turn ends for a member.
func checkTurn(t fatalReporter, g *group) {
	u := &g.turn
	if u.endingSince == 0 && (g.is(messageRefused) && !g.is(frozen) || u.drainedSince != 0) {
		t.Fatalf("R77: a turn that does not end is over: %+v", *u)
	}
	if u.next != none && g.historyOf(MemberID(u.next)).waits == 0 {
		t.Fatalf("R77: member %d is next, and does not wait", u.next)
	}
	for k := range g.members {
		switch w := g.historyOf(MemberID(k)).waits; {
		case w != 0 && !g.members[k].live:
			t.Fatalf("R78: member %d has left, and waits", k)
		case w != 0 && g.tree() == nil && (u.next == none || w < g.historyOf(MemberID(u.next)).waits):
			t.Fatalf("R78: member %d has waited longer than the next one, %d", k, u.next)
		}
	}
	if g.tree() == nil && g.is(ending) && u.next == none || g.tree() != nil && u.next != none {
		t.Fatalf("R78: nobody is next, or the machine knows: %+v", *u)
	}
}

// checkTree: what the data path is told agrees with the token's machine, and a turn that
// others wait for has not come to its end unnoticed.
func checkTree(t fatalReporter, g *group) {
	x := g.tree()
	if x == nil {
		if g.is(frozen) || g.is(wanted) {
			t.Fatalf("R84: frozen %v, wanted %v, in a group of one switch", g.is(frozen), g.is(wanted))
		}
		return
	}
	if elsewhere := g.src.member != none && !x.mayPass(); elsewhere != g.is(frozen) || x.machine.Wanted() != g.is(wanted) {
		t.Fatalf("R84: frozen %v, wanted %v: %+v", g.is(frozen), g.is(wanted), x.status())
	}
	if x.rests() {
		t.Fatalf("R85: the source is at rest, others wait, and it keeps the token: %+v", x.status())
	}
	if (g.turn.contendedSince != 0) != g.is(wanted) {
		t.Fatalf("R85: wanted %v, since %v", g.is(wanted), g.turn.contendedSince)
	}
}

// checkSource: the address and the leg of the source are those of its member.
func checkSource(t fatalReporter, g *group) {
	m := &g.members[g.src.member]
	if g.src.addr != m.ip || g.src.leg != int32(m.leg) || g.src.neighbor != g.legs[m.leg].neighbor {
		t.Fatalf("R16: the source is %+v, member %d is %+v", g.src, g.src.member, *m)
	}
	if g.src.ackedCount < 0 || g.src.ackedCount > maxBehind {
		t.Fatalf("ackedCount is %d", g.src.ackedCount)
	}
	if g.ackStateOf(int(g.src.leg)).flags&isReceiver != 0 {
		t.Fatalf("R21: the source's leg %d receives", g.src.leg)
	}
}

// checkReceivers: the counts are those of the legs' flags.
func checkReceivers(t fatalReporter, g *group) {
	var r receivers
	var mirrored gates
	for i := range g.legs {
		if g.legs[i].joining {
			r.joining++
		}
		f := g.ackStateOf(i).flags
		if f&isReceiver != 0 {
			r.count++
		}
		if f&joinedInFlight != 0 {
			r.joinedInFlight++
		}
		if f&isUnplaced != 0 {
			mirrored = unplaced
			if l := &g.legs[i]; f&isReceiver != 0 || l.joining && g.src.neighbor != 0 || l.connected() || l.members == 0 || int32(i) == g.src.leg {
				t.Fatalf("R89: leg %d is unplaced, and %+v of flags %#x", i, *l, f)
			}
		}
	}
	r.inFlightUntil = g.recv.inFlightUntil
	for gate, yes := range map[gates]bool{
		noReceivers: r.count == 0, joiners: r.joining != 0, tooFew: g.policy.quorum != 0 && r.count < g.policy.quorum, refused: g.refusal.syndrome != 0,
		ending: g.turn.endingSince != 0, unstored: !g.fwd.isDurable(g.fwd.nxt), holding: g.repair.store != nil && len(g.repair.store.held.packets) != 0, learning: g.is(learning) && g.is(resumes),
	} {
		if yes {
			mirrored |= gate
		}
	}
	if is := g.gates & (unplaced | noReceivers | joiners | tooFew | refused | ending | unstored | holding | learning); is != mirrored {
		t.Fatalf("the gates are %#x, and should be %#x: %+v", is, mirrored, g)
	}
	if r != g.recv {
		t.Fatalf("receivers are %+v, counted %+v", g.recv, r)
	}
	if r.joinedInFlight > 0 && r.inFlightUntil.LessEq(g.agg.acked) {
		t.Fatalf("R36: %d receivers joined in flight until %06x, acked is %06x", r.joinedInFlight, uint32(r.inFlightUntil), uint32(g.agg.acked))
	}
}

// checkForwarding: nothing at or above nxt is acknowledged, and numWithoutWindow counts
// the receivers without a window.
func checkForwarding(t fatalReporter, g *group) {
	without := int32(0)
	for i := range g.acks {
		if g.acks[i].flags&isReceiver == 0 {
			continue
		}
		if !g.acks[i].acked.Less(g.fwd.nxt) {
			t.Fatalf("leg %d acknowledged %06x, nxt is %06x", i, g.acks[i].acked, g.fwd.nxt)
		}
		if l := &g.legs[i]; l.connected() && !l.windowed {
			without++
		}
	}
	if without != g.fwd.numWithoutWindow {
		t.Fatalf("R27: %d receivers have no window, numWithoutWindow is %d", without, g.fwd.numWithoutWindow)
	}
	if g.rtt.pending && g.fwd.nxt.LessEq(g.rtt.psn) {
		t.Fatalf("the round trip of %06x is measured, nxt is %06x", g.rtt.psn, g.fwd.nxt)
	}
}

// checkAggregation: acked is as high as the receivers allow, and no higher.
func checkAggregation(t fatalReporter, g *group) {
	var low, pending int32
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			if b.pending != sevNone {
				t.Fatalf("leg %d does not receive and has a pending NAK", i)
			}
			continue
		}
		if b.acked.Less(g.agg.acked) && g.policy.quorum == 0 {
			t.Fatalf("I2: leg %d acknowledged %06x, below acked %06x", i, b.acked, g.agg.acked)
		}
		if b.acked.LessEq(g.agg.acked) || b.flags&joinedInFlight != 0 && g.policy.quorum > 0 {
			low++
		}
		if b.pending != sevNone {
			pending++
		}
	}
	if low != g.agg.numAtAcked || pending != g.agg.numPending {
		t.Fatalf("numAtAcked is %d, numPending %d, counted %d and %d", g.agg.numAtAcked, g.agg.numPending, low, pending)
	}
	if g.recv.count > 0 && low <= g.agg.allowedBehind && !g.is(failed) && !g.is(unplaced) {
		t.Fatalf("acked %06x could be higher: %d of %d receivers have no more", g.agg.acked, low, g.recv.count)
	}
}

// checkLag: no receiver is below floor, a switch's larger limit considered.
func checkLag(t fatalReporter, g *group) {
	if g.lag.psns == 0 {
		return
	}
	for i := range g.acks {
		if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Add(g.lagPSNsOf(i)-g.lag.psns).Less(g.lag.floor) {
			t.Fatalf("R38: leg %d acknowledged %06x, below floor %06x", i, b.acked, g.lag.floor)
		}
	}
}

// checkCongestion: the signals that pass are a receiver's.
func checkCongestion(t fatalReporter, g *group) {
	if i := g.cnp.leg; i != none && g.ackStateOf(int(i)).flags&isReceiver == 0 {
		t.Fatalf("signals of leg %d pass, which does not receive", i)
	}
}
