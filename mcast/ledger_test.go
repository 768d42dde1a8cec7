// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

type fatalReporter interface{ Fatalf(string, ...any) }

// fatal panics where no test is at hand.
type fatal struct{}

func (fatal) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// ledger is a driver's account of the frames that a Switch retains. It checks each call
// that sends copies of them.
type ledger struct {
	held       map[Handle]uint32 // the retained frames, with the bytes that each takes
	used       int64
	before     []cursor
	source     int32
	acked, nxt rocev2.PSN
	counters   countersBefore
}

// cursor is the state of a leg before a call.
type cursor struct {
	flags               uint8
	acked               rocev2.PSN
	cursor, firstUnsent rocev2.PSN
	state               recoveryState
}

// open notes the state of group 0 before a call.
func (l *ledger) open(s *Switch) {
	g := s.group(0)
	l.counters.open(g)
	if g == nil {
		return
	}
	l.before, l.source, l.acked, l.nxt = l.before[:0], g.src.member, g.agg.acked, g.fwd.nxt
	for i := range g.acks {
		b, m := g.ackStateOf(i), &g.activityOf(i).recovery
		l.before = append(l.before, cursor{b.flags, b.acked, m.cursor, m.firstUnsent, m.state})
	}
}

// close checks what the call did with frames. p is the packet of the call, or nil.
func (l *ledger) close(t fatalReporter, s *Switch, p *Packet, out *Output) {
	l.counters.close(t, s.group(0), p, out)
	if l.held == nil {
		l.held = map[Handle]uint32{}
	}
	if out.NeedVerify && (out.Retained || len(out.Freed) > 0) {
		t.Fatalf("frames are kept or released before the packet is verified")
	}
	for _, c := range out.Copies {
		if _, ok := l.held[c.Frame]; !ok && (p == nil || c.Frame != p.Frame) {
			t.Fatalf("copy of frame %d, which is not held", c.Frame)
		}
	}
	if out.Retained {
		if _, ok := l.held[p.Frame]; ok || p.RetainBytes == 0 {
			t.Fatalf("frame %d of %d bytes is kept, before: %v", p.Frame, p.RetainBytes, ok)
		}
		l.held[p.Frame] = p.RetainBytes
		l.used += int64(p.RetainBytes)
	}
	for _, h := range out.Freed {
		n, ok := l.held[h]
		if !ok {
			t.Fatalf("frame %d is released, but not held", h)
		}
		delete(l.held, h)
		l.used -= int64(n)
	}
	if l.used != s.repair.used || l.used > s.repair.limit {
		t.Fatalf("%d bytes are held, the switch counts %d, the limit is %d", l.used, s.repair.used, s.repair.limit)
	}
	if g := s.group(0); g != nil && g.repair.store != nil && g.src.member == l.source {
		l.inOrder(t, g, p, out)
	}
}

// inOrder checks that no leg was sent a packet that it has acknowledged, and no recovering
// leg a packet beyond the first one that it has not been sent. Another switch takes packets
// in any order (R92).
func (l *ledger) inOrder(t fatalReporter, g *group, p *Packet, out *Output) {
	for i := range g.acks {
		b, m := g.ackStateOf(i), &g.activityOf(i).recovery
		var first, last rocev2.PSN
		n := 0
		for _, c := range out.Copies {
			if int(c.Leg) != i {
				continue
			}
			psn := (c.PSN - rocev2.PSN(b.delta)) & rocev2.PSNMask
			resent := n > 0 && psn == last.Next() // the cursor has come to it
			if p == nil && !resent && g.live.deadAfter != 0 && (psn == b.acked || psn != b.acked.Next() && psn == g.fwd.nxt.Prev() && g.livenessProbe(i) == psn) {
				continue // it asks, and repairs nothing (R57)
			}
			if b.flags&(isReceiver|isConnected) == isReceiver && psn.LessEq(b.acked) {
				t.Fatalf("leg %d is sent %06x, and has acknowledged %06x", i, psn, b.acked)
			}
			if b.flags&isConnected == 0 {
				continue
			}
			if n == 1 && psn != last.Next() && first == b.acked.Next() {
				n, first = 0, psn // a probe (R56) does not move the cursor
			}
			if n > 0 && psn != last.Next() {
				t.Fatalf("leg %d is sent %06x after %06x", i, psn, last)
			}
			if n++; n == 1 {
				first = psn
			}
			last = psn
		}
		if n == 0 || b.flags&isReceiver == 0 || i >= len(l.before) || l.before[i].flags&isReceiver == 0 {
			continue
		}
		if first.LessEq(b.acked) {
			t.Fatalf("leg %d is sent %06x, and has acknowledged %06x", i, first, b.acked)
		}
		was := &l.before[i]
		may := l.nxt
		if was.flags&recovering != 0 {
			may = was.cursor
			if was.state.awaitsAnswer() && was.cursor.LessEq(b.acked) {
				may = rocev2.MaxPSN(may, was.firstUnsent)
			}
		} else if p != nil && p.Op != rocev2.Acknowledge && l.nxt.LessEq(p.PSN) {
			may = p.PSN // a gap is allowed: the source's packets may be lost before the switch
		}
		if may = rocev2.MaxPSN(may, b.acked.Next()); may.Less(first) {
			t.Fatalf("C68: leg %d is sent %06x, its turn was %06x; before %+v, now %+v %+v", i, first, may, *was, b, *m)
		}
		at := g.fwd.nxt
		if b.flags&recovering != 0 {
			at = m.cursor
		}
		if n == 1 && first == b.acked.Next() && (was.flags&recovering != 0 && first.Less(was.cursor) || !m.storeServes(&b)) {
			continue // a probe does not move the cursor
		}
		if last.Next() != at && g.repair.store.bytes > 0 {
			t.Fatalf("leg %d was sent %06x last, its cursor is %06x, nxt %06x", i, last, at, g.fwd.nxt)
		}
	}
}

// checkStore recomputes the state that a group with local repair keeps incrementally.
func checkStore(t fatalReporter, g *group) {
	s := g.repair.store
	late := int32(0)
	for i := range g.acks {
		if g.acks[i].flags&recovering != 0 {
			late++
			if g.acks[i].flags&isReceiver == 0 {
				t.Fatalf("leg %d is recovering and does not receive", i)
			}
		}
	}
	if late != g.repair.numRecovering {
		t.Fatalf("numRecovering is %d, counted %d", g.repair.numRecovering, late)
	}
	if s == nil {
		if late > 0 || g.due.armed(repairTimer) {
			t.Fatalf("%d recovering legs without a store", late)
		}
		return
	}
	var bytes int64
	n := 0
	for i := range s.ring {
		if e := &s.ring[i]; e.bytes > 0 {
			bytes += int64(e.bytes)
			n++
		}
	}
	if bytes != s.bytes || bytes > s.limit || bytes > s.sw.repair.used {
		t.Fatalf("%d bytes are stored, counted %d, limit %d, all %d", bytes, s.bytes, s.limit, s.sw.repair.used)
	}
	if g.src.member == none || g.is(failed) {
		if n > 0 {
			t.Fatalf("%d frames are stored for nobody", n)
		}
		return
	}
	for psn := s.first; psn.Less(g.fwd.nxt); psn = psn.Next() {
		if s.find(psn) != nil {
			n--
		} else if s.contiguousFrom.LessEq(psn) {
			t.Fatalf("%06x is not retained, contiguousFrom is %06x, nxt %06x", psn, s.contiguousFrom, g.fwd.nxt)
		}
	}
	if s.first.Less(s.contiguousFrom) && s.find(s.contiguousFrom.Prev()) != nil {
		t.Fatalf("%06x is retained, contiguousFrom is %06x", s.contiguousFrom.Prev(), s.contiguousFrom)
	}
	if n != 0 {
		t.Fatalf("%d frames are stored outside %06x to %06x", n, s.first, g.fwd.nxt)
	}
	wentBack := g.tree() != nil && g.tree().edges.rejoined && g.agg.acked.Next().Less(s.first) // R90: what all others have is freed
	if g.policy.quorum == 0 && s.first != g.agg.acked.Next() && s.bytes > 0 && !wentBack {
		t.Fatalf("frames from %06x on are stored, acked is %06x", s.first, g.agg.acked)
	}
	for i := range g.acks {
		checkRecovery(t, g, i)
	}
}

// checkRecovery checks that leg i does not wait for an event that cannot come.
func checkRecovery(t fatalReporter, g *group, i int) {
	b, m := g.ackStateOf(i), &g.activityOf(i).recovery
	if b.flags&isReceiver == 0 {
		return
	}
	if b.flags&recovering != 0 && (g.fwd.nxt.Less(m.cursor) || m.firstUnsent.Less(m.cursor) || g.fwd.nxt.Less(m.firstUnsent)) {
		t.Fatalf("leg %d: cursor %06x, firstUnsent %06x, nxt %06x", i, m.cursor, m.firstUnsent, g.fwd.nxt)
	}
	if (b.flags&recovering == 0) != (m.state == inSync) || m.state.holds() != (m.resumeAt > 0) {
		t.Fatalf("leg %d has flags %02x: %+v", i, b.flags, *m)
	}
	if b.pending != sevNone || m.escalated || g.due.armed(repairTimer) {
		return
	}
	switch {
	case m.state != inSync && m.state != resending:
		t.Fatalf("leg %d waits, and nothing will end it: %+v", i, *m)
	case m.state == resending && m.cursor.Less(g.fwd.nxt) && g.repair.store.find(m.cursor) != nil:
		t.Fatalf("leg %d is not sent %06x, which is stored: %+v", i, m.cursor, *m)
	case g.repair.store.find(b.acked.Next()) != nil && (b.acked.Less(g.repair.ackReqPSN) || b.acked.Less(m.ackReqPSN)):
		t.Fatalf("leg %d has %06x and owes an ACK of %06x or %06x, and no probe will come: %+v", i, b.acked, g.repair.ackReqPSN, m.ackReqPSN, *m)
	}
}

// drawRepair draws the local repair of a group in a random run: none, with room for a few
// frames, or with room for all. unit is the number of bytes that a retained frame takes.
func drawRepair(rng func(int) int, tick time.Duration) (spec RepairSpec, unit uint32) {
	unit = 1
	if rng(2) == 0 {
		unit = minFrameBytes
	}
	switch rng(4) {
	case 0:
		return RepairSpec{}, unit
	case 1:
		spec.Bytes = int64(unit) * int64(1+rng(5))
	default:
		spec.Bytes = int64(unit) << 12
	}
	spec.Timeout = tick * time.Duration(1+rng(6))
	spec.Tries = 1 + rng(7)
	return spec, unit
}
