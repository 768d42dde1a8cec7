// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The fast path (R97): a program below the driver makes the copies of the source's new
// packets, as long as nothing else is to be decided about them. The core grants that and
// takes it back. Everything that the program has forwarded is reported to the core, packet
// by packet, before the core is given anything else, so that its state is that of a switch
// that has forwarded the packets itself.
//
// The program takes a packet whose PSN is the next one, by compare and swap on the group's
// word, and sends it to the legs whose gates are open (R98). Whatever it does not take
// comes to the core by Input. The word cannot be changed by halves, so when the driver has
// taken it back nothing else is forwarded, and what was is known.

// FastPathSpec says that a group may be offloaded to a fast path, and how. The zero value
// means never.
type FastPathSpec struct {
	// Slots is the number of packets that the fast path retains for repair, a power of 2;
	// 0: the group is never offloaded.
	Slots int
	// Drain is the time after which the last copies of the fast path have reached the other
	// end of their links. A later packet that goes another way waits for it, or would overtake.
	Drain time.Duration
	// Backoff is the least time from a revoke to the next grant.
	Backoff time.Duration
}

func (f *FastPathSpec) check(r *RepairSpec) error {
	switch {
	case *f == FastPathSpec{}:
		return nil
	case f.Slots <= 0 || bits.OnesCount(uint(f.Slots)) != 1 || f.Slots > maxSlots:
		return fmt.Errorf("a fast path with %d slots: must be a power of 2, at most %d", f.Slots, maxSlots)
	case f.Drain <= 0 || f.Backoff < 0:
		return fmt.Errorf("a fast path with a drain of %v and a backoff of %v: want above 0, and not less than 0", f.Drain, f.Backoff)
	case r.Bytes == 0:
		return fmt.Errorf("a fast path with %d slots without local repair: its losses could not be repaired", f.Slots)
	}
	return nil
}

// offloadState says who forwards a group's new packets.
type offloadState uint8

const (
	notOffered offloadState = iota // the core; the driver has no fast path for the group
	corePath                       // the core; the group may be offloaded
	fastPath                       // the program below the driver
	draining                       // the core; its new packets wait until the fast path's copies have arrived
	numOffloadStates
)

func (s offloadState) String() string {
	return [...]string{"NotOffered", "CorePath", "FastPath", "Draining"}[s]
}

// offloadEvent is an event that changes who forwards.
type offloadEvent uint8

const (
	granted   offloadEvent = iota // the driver has asked, and nothing speaks against it
	takenBack                     // the driver has taken the word back, and reported everything
	drained                       // the drain time has passed since
	numOffloadEvents
)

func (e offloadEvent) String() string {
	return [...]string{"granted", "taken back", "drained"}[e]
}

// offloadTable has the transitions, by event and state: NotOffered, SlowPath, FastPath,
// Draining.
var offloadTable = [numOffloadEvents][numOffloadStates]offloadState{
	granted:   {notOffered, fastPath, fastPath, draining},
	takenBack: {notOffered, corePath, draining, draining},
	drained:   {notOffered, corePath, fastPath, corePath},
}

// offload is what a group that may be offloaded has.
type offload struct {
	spec         FastPathSpec  `state:"constant"`
	drainUntil   time.Duration `state:"ahead = c.drainUntil(x)"` // end of draining
	grantFrom    time.Duration `state:"ahead"`                   // no grant before
	gatesChanged bool          `state:"derived = false"`         // a leg's gate may have to be opened or shut
	copies       uint64        `state:"ignored"`                 // counter: copies that the fast path has made, of Counters.Copies
}

// deliverOffload gives the group an event. It is the only function that changes who
// forwards its new packets.
func (g *group) deliverOffload(e offloadEvent) {
	g.repair.path = offloadTable[e][g.repair.path]
}

// Grant is what the fast path of a group begins with.
type Grant struct {
	Nxt        rocev2.PSN // the first PSN to take
	MidMessage bool       // the message of Nxt-1 is not complete
	Limit      rocev2.PSN // the result of OffloadLimit
	Messages   rocev2.MSN // the source's messages before Nxt, in the numbering of its ACKs
}

// OrderKind is the kind of an Order.
type OrderKind uint8

// Orders.
const (
	// AskOffload: the group may be offloaded. When the driver has sent all copies, and has
	// no packet of the group left, it calls Offload.
	AskOffload OrderKind = iota + 1
	// Revoke: the driver takes the group's word back, reports what was forwarded, and calls
	// Revoked.
	Revoke
	// OpenGate: when the copies of this call have been sent, the fast path has the leg from
	// Next on. The order is void if one of these copies was given back (Requeue).
	OpenGate
	// ShutGate: the fast path sends the leg nothing more.
	ShutGate
)

// Order is an instruction to the driver's fast path.
type Order struct {
	Kind  OrderKind
	Group GroupID
	Leg   LegID      // the leg of OpenGate and ShutGate
	Next  rocev2.PSN // the leg's first PSN, of OpenGate; in the source's space
	Delta uint32     // number that is added to a PSN toward the leg, of OpenGate; modulo 2^24
}

// setFastPath offers the fast path to a new group.
func (g *group) setFastPath(f FastPathSpec) {
	if f.Slots != 0 {
		g.repair.path, g.newExtra().offload = corePath, &offload{spec: f}
	}
}

// mayStayOffloaded reports whether new packets of the source need no decision.
func (g *group) mayStayOffloaded() bool {
	return g.src.member != none && !g.is(decides)
}

// mayOffload reports whether the group may be offloaded now: besides, everything before nxt
// is accounted for, nobody waits for a turn, and the source is not about to go back.
func (g *group) mayOffload(now time.Duration) bool {
	return g.repair.path == corePath && now >= g.extra.offload.grantFrom && g.mayStayOffloaded() && g.fwd.targets == nil && g.turn.contendedSince == 0 && !g.numbering.gap &&
		g.src.hasLastPSN && g.src.lastPSN == g.fwd.nxt.Prev() && !g.agg.request.isOpen() && g.fwd.nxt.Less(g.offloadLimit())
}

// offloadLimit is OffloadLimit.
func (g *group) offloadLimit() rocev2.PSN {
	limit := rocev2.MinPSN(g.repair.store.first.Add(int32(g.extra.offload.spec.Slots)), g.agg.acked.Add(maxAhead+1))
	if g.policy.stored {
		limit = rocev2.MinPSN(limit, g.fwd.limit)
	}
	return limit
}

// OffloadLimit returns the first PSN that the fast path of a group must not take yet: there
// is no slot for it, no position is stored for it (R83), or it is too far ahead (R61). It
// grows while the group is offloaded. The driver passes it on after each batch.
func (v Group) OffloadLimit() rocev2.PSN {
	g := v.g
	if g == nil || g.repair.path == notOffered {
		return 0
	}
	return g.offloadLimit()
}

// OffloadCopies returns how many of a group's Counters.Copies the fast path was to make. It is
// exact if every gate let a packet pass from the moment on at which it was ordered to be open,
// and no other; the driver, which counts what gates let pass, knows better.
func (v Group) OffloadCopies() uint64 {
	if g := v.g; g != nil && g.repair.path != notOffered {
		return g.extra.offload.copies
	}
	return 0
}

// Offload grants the fast path to a group, if that may be. The orders in out say which gates
// are open; all others are shut. The driver sets gates and limit before the group's word.
// When it calls Offload every copy has been sent, and it has no packet of the group left.
func (s *Switch) Offload(now time.Duration, id GroupID, out *Output) (Grant, bool) {
	out.reset()
	g := s.group(id)
	if g == nil {
		return Grant{}, false
	}
	if g.endDrain(now); !g.mayOffload(now) {
		return Grant{}, false
	}
	g.deliverOffload(granted)
	g.setGates(out)
	return Grant{Nxt: g.fwd.nxt, MidMessage: g.fwd.midMessage, Limit: g.offloadLimit(), Messages: g.agg.messages.last()}, true
}

// Revoked tells the switch that the group's word was taken back, and that all packets that
// were forwarded have been reported. The driver may take the word back at any time.
func (s *Switch) Revoked(now time.Duration, id GroupID, out *Output) {
	out.reset()
	g := s.group(id)
	if g == nil || g.repair.path != fastPath {
		return
	}
	x := g.extra.offload
	g.deliverOffload(takenBack)
	g.set(lostNxt, false)
	x.drainUntil, x.grantFrom = now+x.spec.Drain, now+x.spec.Backoff
	g.forgetGates()
	if g.is(wanted) {
		g.tree().rest(now, out)
	}
	s.rearm(g)
}

// checkTakenBack refuses a change of a group that the fast path has.
func (s *Switch) checkTakenBack(id GroupID) error {
	if g := s.group(id); g != nil && g.repair.path == fastPath {
		return fmt.Errorf("mcast: group %d: is on the fast path; take it back first", id)
	}
	return nil
}

// isDraining reports whether new packets wait for the copies of the fast path.
func (g *group) isDraining(now time.Duration) bool {
	return g.repair.path == draining && now < g.extra.offload.drainUntil
}

// endDrain ends a drain whose time has passed.
func (g *group) endDrain(now time.Duration) {
	if g.repair.path == draining && !g.isDraining(now) {
		g.deliverOffload(drained)
	}
}

// deferLeg has leg i, which is in sync, get psn from the store when the drain time has passed.
// It returns false if the store cannot do that: then the copy goes at once.
func (g *group) deferLeg(i int, psn rocev2.PSN) bool {
	m := &g.activity[i].recovery
	if !m.storeServes(&g.acks[i]) || g.repair.store.find(psn) == nil {
		return false
	}
	m.cursor = g.fwd.nxt // below psn, if packets were lost before the switch
	g.deliver(i, copyRefused)
	g.resumeAfter(m, g.extra.offload.drainUntil)
	return true
}

// giveOrders appends the orders that follow from the state of a group that may be offloaded.
func (g *group) giveOrders(now time.Duration, out *Output) {
	g.endDrain(now)
	switch {
	case g.repair.path != fastPath:
		if g.mayOffload(now) {
			out.Orders = append(out.Orders, Order{Kind: AskOffload, Group: g.id})
		}
	case !g.mayStayOffloaded():
		out.Orders = append(out.Orders, Order{Kind: Revoke, Group: g.id})
	case g.extra.offload.gatesChanged:
		g.setGates(out)
	}
}

// OffloadTable is what the fast path of a group has to know to make copies, beside the
// driver's own tables. It holds as long as the source does, and the members.
type OffloadTable struct {
	Source MemberID
	Window Window // what WRITEs address; Len 0: they are not rewritten
	// NoWrite: WRITEs of bytes are not taken, since a receiver has no memory for them.
	NoWrite bool
	Legs    []OffloadLeg // those that get copies; reused
}

// OffloadLeg is the memory that WRITEs go to at the member of a connected leg, in a group
// with a window.
type OffloadLeg struct {
	Leg     LegID
	VADelta uint64 // number that is added to the address
	RKey    uint32
}

// OffloadTable writes what the fast path of a group has to know into t. It returns false
// if no member is the source, or if the fast path is not for this group.
func (v Group) OffloadTable(t *OffloadTable) bool {
	g := v.g
	if g == nil || g.repair.path == notOffered || g.src.member == none {
		return false
	}
	*t = OffloadTable{Source: MemberID(g.src.member), Legs: t.Legs[:0]}
	if g.fwd.hasWindow {
		t.Window, t.NoWrite = g.fwd.window, g.fwd.numWithoutWindow != 0
	}
	for i := range g.acks {
		if g.acks[i].flags&isReceiver == 0 {
			continue
		}
		l := OffloadLeg{Leg: LegID(i)}
		if g.fwd.hasWindow && g.legs[i].connected() {
			l.VADelta, l.RKey = g.legs[i].base-g.fwd.window.Base, g.legs[i].rkey
		}
		t.Legs = append(t.Legs, l)
	}
	return true
}

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
