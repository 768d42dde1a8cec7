// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Wrong ways to register a group: at the registrar, and at masters and members. The
// rule is a subject of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("each segment of another instance is challenged", "Registrar", mutant.In((*Registrar).challenge,
		`if m.Seq != 0 {
		return
	}`,
		"")),
	mutant.New("a hint may be longer than what it answers", "Authentication", mutant.In((*Registrar).sendHint,
		"if len(out.Packets[len(before)].Data) > size {",
		"if out == nil {")),
	mutant.New("answers have the switch's own key", "Authentication", mutant.In((*Registrar).reply,
		"r.sendUnder(h.KeyID, us, h.ReplyTo, &Message{Header: Header{",
		"r.sendUnder(r.$1.$2, us, h.ReplyTo, &Message{Header: Header{", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("a short limit on leases is no default", "Leases", mutant.In((*RegistrarConfig).setDefaults,
		"min(time.Minute, c.MaxLease)",
		"time.Minute")),
	mutant.New("a repetition may come from another port", "Assembly", mutant.In((*group).hasSegment,
		"&& m.ReplyTo == g.reg.Master",
		"&& m.ReplyTo.$1() == g.reg.Master.$1()", netip.AddrPort.Addr)),
	mutant.New("a repetition extends the lease", "Assembly", mutant.In((*Registrar).answerAgain,
		"if !g.unaccepted {\n\t\tr.acceptRegister(&m.Header, g, out)",
		"if g.$1.$4 += g.$2.$3; !g.unaccepted {\n\t\tr.acceptRegister(&m.Header, g, out)", group{}.lease, group{}.reg, Registration{}.Lease, timer[*group]{}.at)),
	mutant.New("who begins again with an older transaction hears nothing", "Assembly", mutant.In((*Registrar).assemblyFor,
		"if m.Epoch == a.header.Epoch && m.ReplyTo.Addr() == a.header.ReplyTo.Addr() {",
		"if m.Epoch == a.header.Epoch && m.ReplyTo.Addr() == ($1{}).ReplyTo.Addr() {", Header{})),
	mutant.New("unfinished registrations without bound", "Assembly", mutant.In((*Registrar).assemblyFor,
		"(len(r.pending) >= r.cfg.MaxPending ||",
		"(len(r.pending) >= r.cfg.MaxPending+9 ||")),
	mutant.New("a rejected epoch may be used again", "Epochs", mutant.In((*Registrar).refuse,
		"e.rejected, e.problem = h.Epoch, &p",
		"e.problem = &p")),
	mutant.New("a key's longest lease is no bound", "Leases", mutant.In((*Registrar).leaseFor,
		"q.Lease > 0 {",
		"q.Lease > 1<<62 {")),
	mutant.New("a queue pair may be in two groups", "Registrar", mutant.In((*Registrar).check,
		"has(k) && (old == nil ||",
		"has(k) && (old != nil &&")),
	mutant.New("a group's address may be a member's", "Registrar", mutant.In((*Registrar).check,
		"if r.Serves(k.IP) {",
		"if r.Serves(k.IP) && k.$1 == 0 {", MemberKey{}.QPN)),
	mutant.New("the old master hears nothing of a replacement", "Registrar", mutant.In((*Registrar).queueReplaced,
		"old.reg.Master != g.reg.Master && why == Replaced {",
		"old.reg.Master == g.reg.Master && why == Replaced {")),
	mutant.New("who stays hears Gone of a replacement", "Registrar", mutant.In((*Registrar).queueReplaced,
		"g.reg.Find(k) < 0 && old.reg.Tree.Leg(i)",
		"g.reg.Find(k) < 65536 && old.reg.Tree.Leg(i)")),
	mutant.New("a Notify has the switch's own key", "Authentication", mutant.In((*Registrar).notify,
		"r.sendUnder(g.key, netip",
		"r.sendUnder(r.$1.$2, netip", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("an older Renew is taken", "Leases", mutant.In((*Registrar).renew,
		"case d < 0:",
		"case d < -1<<31:")),
	mutant.New("an older Renew is not answered", "Leases", mutant.In((*Registrar).renew,
		"r.rejectRequest(&m.Header, Problem{Reason: StaleTransaction, Value: uint64(g.tx)}, out)",
		"r.$1($2, out)", (*endpointLink).drop, StaleMessage)),
	mutant.New("a repeated Renew counts again", "Leases", mutant.In((*Registrar).renew,
		`		r.rejectRequest(&m.Header, Problem{Reason: StaleTransaction, Value: uint64(g.tx)}, out)
		return
	case d == 0:`,
		`		r.rejectRequest(&m.Header, Problem{Reason: StaleTransaction, Value: uint64(g.tx)}, out)
		return
	case d == 0 && g == nil:`)),
	mutant.New("a Leave of before the record counts", "Requests", mutant.In((*Registrar).leave,
		"!ok || m.Epoch < since || m.Epoch > g.reg.Epoch {",
		"!ok || m.Epoch < min(since, 1) || m.Epoch > g.reg.Epoch {")),
	mutant.New("an evicted member hears nothing", "Gone", mutant.In((*Registrar).tell,
		"if !g.local() && here &&",
		"if g.local() && here &&")),
	mutant.New("an Ack under another key ends a Gone", "AckIsTheAddressees", mutant.In((*Registrar).ack,
		"e.key == m.KeyID && e.to.Addr()",
		"e.to.Addr()")),
	mutant.New("any request proves its sender's address", "ProofOfAddress", mutant.In((*Registrar).challenge,
		"r.drop(WrongInstance, out)",
		"r.drop(WrongInstance, out)\nout.$1 = true", (&Output{}).Proved)),
	mutant.New("a Gone is sent for ever", "Gone", mutant.In((*Registrar).advanceEvents,
		"if e.tries >= r.cfg.EventTries {",
		"if e.tries >= 1000 {")),
	mutant.New("a Gone has the switch's own key", "Authentication", mutant.In((*Registrar).sendGone,
		"r.sendUnder(e.key, us, e.to, &Message{Header: Header{",
		"r.sendUnder(r.$1.$2, us, e.to, &Message{Header: Header{", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("a group outlives its lease", "Leases", mutant.In((*timers[*group]).fired,
		"(*q)[0].at <= now",
		"(*q)[0].at+$1 < now", time.Second)),
	mutant.New("an update of any older epoch", "Updates", mutant.In((*Registrar).checkUpdate,
		"if old.reg.Epoch != g.reg.Base {",
		"if old.reg.Epoch < g.reg.Base {")),
	mutant.New("anybody may update", "Updates", mutant.In((*Registrar).checkUpdate,
		"if old.reg.Master.Addr() != g.reg.Master.Addr() {",
		"if old == nil {")),
	mutant.New("an update may name who has gone", "Updates", mutant.In((*Registrar).checkUpdate,
		".rec == *m && !g.local() {",
		".rec == *m && g.local() {")),
	mutant.New("who has gone is not told again", "Updates", mutant.In((*Registrar).requeueGone,
		`if !g.local() {
		r.queueGone(now, g, g.reg.Master, body, out)
	}`,
		"")),
	mutant.New("who is being told is told at once again", "Updates", mutant.In((*Registrar).requeueGone,
		"if r.events.underWay(body, g.reg.Master) {",
		"if body == nil {")),
	mutant.New("an identical registration begins the group anew", "Used numbers", mutant.In((*Registrar).keepRunning,
		"g.reg.Base, g.unchanged = old.reg.Epoch, true",
		"g.unchanged = true")),
	mutant.New("half of the MAC will do", "Authentication", mutant.In(Keys.open,
		"if !hmac.Equal(macOf(key, h.Type, b[:n]), b[n:]) {",
		"if !hmac.Equal(macOf(key, h.Type, b[:n])[:16], b[n:n+16]) {")),
	mutant.New("no MAC will do", "Authentication", mutant.In(Keys.open,
		`if !insecure {
			return Message{Header: h}, false, defect(Unauthenticated, "it has no MAC, and insecure is not set here")`,
		`if !insecure && h.$1 == $2 {
			return Message{Header: h}, false, defect(Unauthenticated, "it has no MAC, and insecure is not set here")`, Header{}.Type, TypeRegister)),
	mutant.New("a key may be short", "Authentication", mutant.In((*Auth).check,
		"if len(k) < MinKeyLen {",
		"if len(k) < 1 {")),
	mutant.New("hops without a relay", "Registrar", mutant.In(parseHeader,
		"if b[9] != 0 && flags",
		"if b[9] > 99 && flags")),
	mutant.New("another rq_psn is confirmed", "Member", mutant.In(compare,
		`case rec.RQPSN != g.RQPSN:
		return RQPSNMismatch
	case rec.Window != g.Window && (rec.Window != mcast.Window{} || n.Window != mcast.Window{}):`,
		`case rec.RQPSN < g.RQPSN:
		return RQPSNMismatch
	case rec.Window != g.Window && (rec.Window != mcast.Window{} || n.Window != mcast.Window{}):`)),
	mutant.New("a Confirm has the member's own key", "Authentication", mutant.In((*Member).sendConfirm,
		"m.sendUnder(msg.KeyID, m.cfg.Local, msg.ReplyTo",
		"m.sendUnder(m.$1.$2, m.cfg.Local, msg.ReplyTo", endpointLink{}.auth, Auth{}.Send)),
	mutant.New("a member that was refused says nothing", "Member", mutant.In((*Member).Problem,
		"case g.status != Confirmed:",
		"case g.status > $1:", NumStatuses)),
	mutant.New("old messages of strangers are a member's trouble", "Member", mutant.In((*Member).Join,
		"g := &membership{Membership: ms, unauthenticAtJoin: m.numUnauthentic()}",
		"g := &membership{Membership: ms}")),
	mutant.New("a master's lease counts from the answer", "Master", mutant.In((*Master).handleAccept,
		`m.leaseUntil = m.registerSentAt + a.Lease // counted from our sending: the switch's own lease ends later
		m.reg.Lease = a.Lease`,
		`m.leaseUntil = $arg1 + a.Lease // counted from our sending: the switch's own lease ends later
		m.reg.Lease = a.Lease`)),
	mutant.New("a master's lease counts from the Renew's answer", "Master", mutant.In((*Master).handleAccept,
		`m.leaseUntil = m.renewSentAt + a.Lease
		if m.phase == registered {`,
		`m.leaseUntil = $arg1 + a.Lease
		if m.phase == registered {`)),
	mutant.New("a Confirm of another epoch counts", "Master", mutant.In((*Master).handleConfirm,
		`i := m.reg.Find(c.Member)
	switch {
	case msg.Epoch != m.reg.Epoch:`,
		`i := m.reg.Find(c.Member)
	switch {
	case msg.Epoch < m.reg.Epoch:`)),
	mutant.New("a Renew is sent when the lease is nearly over", "Master", mutant.In((*Master).scheduleRenew,
		"wait := lease / 3",
		"wait := lease")),
	mutant.New("a failed registration stays at the switch", "Master", mutant.In((*Master).fail,
		"if cleanUp && m.instance != 0 {",
		"if cleanUp && m.instance == 0 {")),
	mutant.New("a Challenge raises the epoch that the request itself has", "Master", mutant.In((*Master).handleChallenge,
		"c.EpochKnown > m.reg.Epoch)",
		"c.EpochKnown >= m.reg.Epoch)")),
	mutant.New("who gives up is not told of the hint", "Master", mutant.In((*Master).Unfinished,
		"SwitchSilent: true, Challenged: m.instance != 0, AuthHint: m.authHint,",
		"SwitchSilent: true, Challenged: m.instance != 0,")),
	mutant.New("waits do not get longer", "Timers", mutant.In((*backoff).retry,
		"if b.wait *= 2; b.wait > max {",
		"if b.wait > max {")),
	mutant.New("nothing is jittered", "Timers", mutant.In((*random).jitter,
		"return d - d/4 + time.Duration(r.next()%uint64(d/2+1))",
		"return d + time.Duration(r.next()%1)")),
	mutant.New("a master may have messages that no switch takes", "Assembly", mutant.In(payloadRoom,
		"return min(mtu-ip-8, MaxLen) -",
		"return mtu - ip - 8 -")),
}
