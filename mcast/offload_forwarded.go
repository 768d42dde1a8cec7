// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// InputForwarded reports a packet of the current source that the fast path has forwarded to
// the legs whose gates were open. The driver reports all of them, in the order of their PSNs,
// before any other call for the group, and up to the last one that was forwarded when the
// packet of that call arrived: an acknowledgement of what the core does not know of would be
// taken for a sign of another numbering (R54). Output is as that of Input; its copies are for
// legs whose gates are shut. If the ICRC that NeedVerify asks for is wrong the packet is not
// reported: receivers have dropped it. The driver takes the group's word back then.
func (s *Switch) InputForwarded(now time.Duration, id GroupID, p *Packet, out *Output) {
	out.reset()
	g := s.group(id)
	psn, f := p.PSN&rocev2.PSNMask, p.Op.Flags()
	switch {
	case g == nil:
		out.Drop = UnknownGroup
		return
	case g.is(failed):
		out.Drop = FailedGroup
	case g.repair.path != fastPath || psn.Less(g.fwd.nxt):
		out.Drop = PSNOutOfRange
	case !p.Verified && g.mayBeDamaged(now, psn):
		out.NeedVerify = true
		return
	default:
		g.dataForwarded(now, p, psn, f, out)
	}
	if out.Drop != None {
		g.counters.rare().Drops[out.Drop]++
	}
	g.giveOrders(now, out)
	s.rearm(g)
}

// dataForwarded is handleData for a packet that the fast path has forwarded: there is nothing
// left to decide.
func (g *group) dataForwarded(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) {
	g.noteServed(now, psn)
	g.set(lostNxt, false)
	if psn != g.fwd.nxt || f&rocev2.OpStart != 0 {
		g.noteMessageStart(p, psn, f)
	}
	g.forward(now, p, psn, f, out)
	g.noteForwarded(psn, f)
	if p.AckReq || g.repair.asks(psn) {
		g.startRTT(now, psn)
		g.noteAckReq(now, psn)
	}
	if g.live.period != 0 && !g.due.armed(livenessCheck) {
		g.startLiveness(now)
	}
	g.resend(now, out)
}

// Gates (R98). The fast path has the legs that are in sync. A leg that is not gets everything
// from the store, in order, while the others go on. Its gate is opened when it has been sent
// everything below nxt. If the fast path has taken that PSN in the meantime the gate does not
// let anything pass: the driver sees that, shuts it, and gives the packet back by Requeue.

// noteGate notes that leg i has fallen behind or is in sync again, or that it is removed.
func (g *group) noteGate(m *recovery, behind bool) {
	if g.repair.path == fastPath {
		m.shutNow, g.extra.offload.gatesChanged = behind, true
	}
}

// setGates orders the gates of the legs as their states demand.
func (g *group) setGates(out *Output) {
	g.extra.offload.gatesChanged = false
	for i := range g.acks {
		b, m := &g.acks[i], &g.activity[i].recovery
		open := b.flags&(isReceiver|recovering) == isReceiver
		if open == m.gateOpen {
			continue
		}
		kind := ShutGate
		if open {
			kind = OpenGate
		}
		m.gateOpen = open
		out.Orders = append(out.Orders, Order{Kind: kind, Group: g.id, Leg: LegID(i), Next: g.fwd.nxt, Delta: b.delta})
	}
}

// forgetGates notes that no gate lets anything pass.
func (g *group) forgetGates() {
	g.extra.offload.gatesChanged = false
	for i := range g.activity {
		g.activity[i].recovery.gateOpen = false
	}
}

// startDrain begins the drain of a leg that has just left the fast path.
func (g *group) startDrain(now time.Duration, m *recovery) {
	if m.shutNow {
		m.shutNow, m.drainUntil = false, now+g.extra.offload.spec.Drain
	}
}

// roomFor is portRoom of leg i, which gets nothing from the store before the copies that the
// fast path has sent it have arrived.
func (g *group) roomFor(now time.Duration, i int, out *Output) (copies int, until time.Duration) {
	if m := &g.activity[i].recovery; g.repair.path != notOffered {
		g.startDrain(now, m)
		if now < m.drainUntil {
			return 0, m.drainUntil
		}
	}
	return out.portRoom(g.id, LegID(i))
}
