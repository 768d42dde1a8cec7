// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// The frames that a driver retains for a switch that repairs losses, and the records of
// the checks about them.

// legState is the checks' record of a leg in this turn. Packets are named by their index
// in the source's stream.
type legState struct {
	top      uint8 // one above the highest index that was sent to it
	due      uint8 // 0, or one above the index that must come next, after a NAK that was answered from the store
	probed   bool  // the last copy asks for an ACK: what follows depends on the answer
	tries    uint8 // resends of the same packet from the store
	rnrCount uint8 // RNR NAKs that did not go to the source, since the last progress
	resumeAt time.Duration
}

// Bits of a handle beside index and source of the packet.
const (
	handleAckReq = 1 << 16
	handleAgain  = 1 << 17 // the same packet in another frame
)

// newHandle names the frame of a packet that arrives: no retained frame has that name.
func (r *switchState) newHandle(p *packet) mcast.Handle {
	h := mcast.Handle(p.source)<<8 | mcast.Handle(p.index)
	if p.ackReq {
		h |= handleAckReq
	}
	for slices.Contains(r.held, h) {
		h += handleAgain
	}
	return h
}

// frameOf returns the packet in a frame, as its source sent it, without its PSN.
func frameOf(h mcast.Handle) packet {
	return packet{source: uint8(h >> 8), index: uint8(h), ackReq: h&handleAckReq != 0}
}

// retain retains the frame of in if the switch says so, and checks that all copies are of
// frames that are present. It returns false if they are not.
func (w *World) retain(sw int, in *mcast.Packet) bool {
	r, o := &w.switches[sw], &w.swOut
	if o.Retained {
		if in == nil || in.RetainBytes == 0 || slices.Contains(r.held, in.Frame) {
			w.fault(sw, "keeps a frame that did not come")
			return false
		}
		r.held = append(r.held, in.Frame)
	}
	for i := range o.Copies {
		if c := &o.Copies[i]; (in == nil || c.Frame != in.Frame) && !slices.Contains(r.held, c.Frame) {
			w.fault(sw, "a copy of frame %#x, which is not kept", uint32(c.Frame))
			return false
		}
	}
	return true
}

// release removes the frames that a switch has freed.
func (w *World) release(sw int) {
	r := &w.switches[sw]
	for _, h := range w.swOut.Freed {
		k := slices.Index(r.held, h)
		if k < 0 {
			w.fault(sw, "lets go of frame %#x, which it does not keep", uint32(h))
			return
		}
		r.held[k] = r.held[len(r.held)-1]
		r.held = r.held[:len(r.held)-1]
	}
	slices.Sort(r.held)
	if !w.endToEnd {
		w.checkHeld(sw)
	}
}

// checkHeld compares the frames that the driver retains with the switch's state.
func (w *World) checkHeld(sw int) {
	r, a := &w.switches[sw], &w.after
	if a.Retained != int64(len(r.held))*frameBytes {
		w.fault(sw, "%d frames are kept, the switch thinks of %d bytes", len(r.held), a.Retained)
	}
	if len(r.held) > w.cfg.Repair {
		w.fault(sw, "%d frames are kept, of at most %d", len(r.held), w.cfg.Repair)
	}
	low := a.Acked
	if w.cfg.Policy == mcast.Quorum && slices.ContainsFunc(a.Members, func(m mcast.MemberStatus) bool { return receives(&m) && !m.Source && m.Lag > 0 }) {
		low = w.cfg.host(int(a.Source)).SQ.Prev() // freed when the last receiver has all data
	}
	for _, h := range r.held {
		f := frameOf(h)
		if !a.HasSource || a.Source != mcast.MemberID(f.source) || int(f.index) < w.count(int(f.source), low) {
			w.fault(sw, "packet %d of %s is kept, and everybody has it", f.index, name(int(f.source)))
		}
	}
}

// keeps reports whether all packets of source from first to last-1 are retained.
func (r *switchState) keeps(source, first, last int) bool {
	for k := first; k < last; k++ {
		if !slices.ContainsFunc(r.held, func(h mcast.Handle) bool {
			f := frameOf(h)
			return int(f.source) == source && int(f.index) == k
		}) {
			return false
		}
	}
	return true
}

// checkRepair checks a switch's recovery of legs against RC.md §9. held has the frames
// that were retained before the step or by it, also those that it frees.
func (w *World) checkRepair(sw int, same bool, in *mcast.Packet) {
	r, b, a := &w.switches[sw], &w.before, &w.after
	if !same {
		clear(r.legs)
	}
	src := int(a.Source)
	gets := func(i int) bool { return same && receives(&a.Members[i]) && r.leg[i] != r.leg[src] }
	for i := range a.Members {
		if gets(i) && !receives(&b.Members[i]) {
			r.legs[r.leg[i]] = legState{top: uint8(w.count(src, a.Members[i].Acked))}
			continue
		}
		if gets(i) && a.Members[i].Acked != b.Members[i].Acked {
			r.legs[r.leg[i]].progressed(w.count(src, a.Members[i].Acked), w.count(src, b.Nxt)-1)
		}
	}
	w.noteServed(sw, same, in)
	w.checkOrder(sw, in)
	for i := range a.Members {
		if !gets(i) {
			continue
		}
		m, old, x := &a.Members[i], &b.Members[i], &r.legs[r.leg[i]]
		if k := rank(m.Pending); k == 0 || k == 3 || rank(old.Pending) == k && m.Acked == old.Acked {
			continue
		}
		e := w.count(src, m.Acked)
		if int(x.tries) < w.cfg.tries() && time.Duration(x.rnrCount+1)*rnrWait <= 8*w.cfg.patience() && r.keeps(src, e, w.count(src, a.Nxt)-1) {
			w.fault(sw, "the source is to be asked for packet %d and what follows for %s, and all of it is kept", e, name(i))
		}
	}
	if same && w.cfg.unnoticed() && in != nil && in.Op != rocev2.Acknowledge && sw == 0 && in.PSN.Less(b.Nxt) {
		w.fault(sw, "%s sends %s again, and nothing was lost on its way", name(src), notation.PSN(in.PSN))
	}
}

// progressed follows an acknowledgement of new data: the leg now has n packets, of hi.
func (x *legState) progressed(n, hi int) {
	x.tries, x.rnrCount, x.resumeAt = 0, 0, 0
	x.top = max(x.top, uint8(n)) // a requeued copy among them had been sent before
	switch {
	case x.due == 0:
	case x.probed:
		x.due = 0 // the leg may have more packets, from earlier copies
	case n == hi:
		x.due = 0
	case int(x.due) <= n:
		x.due = uint8(n + 1)
	}
}

// noteServed counts NAKs that are answered from the store, and probes.
func (w *World) noteServed(sw int, same bool, in *mcast.Packet) {
	r, b, a := &w.switches[sw], &w.before, &w.after
	if !same {
		return
	}
	src := int(a.Source)
	if a.Counters.NAKsServed != b.Counters.NAKsServed {
		for i := range a.Members {
			if !receives(&a.Members[i]) || r.leg[i] == r.leg[src] || !w.isFrom(sw, i, in) {
				continue
			}
			w.servedOne(sw, &r.legs[r.leg[i]], w.count(src, a.Members[i].Acked), in)
			break // the others behind the same neighbour have the same leg
		}
	}
	if a.Counters.Probes != b.Counters.Probes && w.cfg.PortRoom == 0 {
		var legs []*legState
		for l := range r.legs {
			if l < len(r.at) && w.probesAgain(sw, mcast.LegID(l)) {
				legs = append(legs, &r.legs[l])
			}
		}
		for _, o := range w.swOut.Orders {
			if o.Kind == mcast.ShutGate {
				legs = append(legs, &r.legs[o.Leg]) // the probe follows after the hold
			}
		}
		if n := a.Counters.Probes - b.Counters.Probes; n == uint64(len(legs)) { // otherwise a probe had to wait for another reason
			for _, x := range legs {
				w.countTry(sw, x)
			}
		}
	}
}

func (w *World) servedOne(sw int, x *legState, n int, in *mcast.Packet) {
	w.countTry(sw, x)
	x.due, x.probed = uint8(n+1), false
	if rank(in.Syndrome) == 2 {
		x.rnrCount++
		x.resumeAt = w.now + rnrWait
	}
}

func (w *World) countTry(sw int, x *legState) {
	if x.tries++; int(x.tries) > w.cfg.tries() {
		w.fault(sw, "sends the same again %d times, of at most %d", x.tries, w.cfg.tries())
	}
}

// probesAgain reports whether the step sends a leg the packet that it lacks first, as a
// probe.
func (w *World) probesAgain(sw int, l mcast.LegID) bool {
	r, a := &w.switches[sw], &w.after
	i := r.at[l]
	if l == r.leg[a.Source] || !receives(&a.Members[i]) {
		return false
	}
	first, asks := false, false // a longer probe ends with the AckReq
	for _, c := range w.swOut.Copies {
		if f := frameOf(c.Frame); c.Leg == l {
			first = first || int(f.index) == w.count(int(a.Source), a.Members[i].Acked)
			asks = asks || f.ackReq || c.Flags&mcast.SetAckReq != 0
		}
	}
	return first && asks
}

// checkOrder follows the packets that are sent to each leg. A packet that is new to a leg
// follows its predecessor, unless that has not arrived or is not retained. After a NAK
// that was answered from the store the packet named comes next, then its successors in
// order. Another switch takes packets in any order (R92).
func (w *World) checkOrder(sw int, in *mcast.Packet) {
	r := &w.switches[sw]
	for i := range w.swOut.Copies {
		c := &w.swOut.Copies[i]
		f, x := frameOf(c.Frame), &r.legs[c.Leg]
		kept := in == nil || c.Frame != in.Frame
		if x.resumeAt > w.now && kept {
			w.fault(sw, "packet %d for leg %d, whose receiver is not ready before %v", f.index, c.Leg, x.resumeAt-w.now)
		}
		if int(c.Leg) < len(r.at) && r.legNear[c.Leg] != 0 {
			x.top, x.due, x.probed = max(x.top, f.index+1), 0, false
			continue
		}
		for k := x.top; k < f.index; k++ {
			if r.keeps(int(f.source), int(k), int(k)+1) {
				w.fault(sw, "packet %d for leg %d, which was not sent packet %d", f.index, c.Leg, k)
			}
		}
		if !kept && f.index < x.top && w.after.Retained > 0 && !w.first(sw, c.Leg, f.index) {
			w.fault(sw, "packet %d again for leg %d, as its source sent it again: it was not asked for", f.index, c.Leg)
		}
		if x.due > 0 {
			if f.index+1 > x.due {
				w.fault(sw, "packet %d for leg %d, whose turn is packet %d: it will ask for that once more", f.index, c.Leg, x.due-1)
			}
			x.due = f.index + 2
			if int(x.due) > w.count(int(f.source), w.after.Nxt)-1 {
				x.due = 0 // in sync
			}
		}
		x.probed = c.Flags&mcast.SetAckReq != 0 || f.ackReq
		x.top = max(x.top, f.index+1)
	}
}

// first reports whether leg l gets packet index from its source when the source repeats
// it: the leg lacks that packet first, or is recovering.
func (w *World) first(sw int, l mcast.LegID, index uint8) bool {
	r, b := &w.switches[sw], &w.before
	for i := range b.Members {
		if m := &b.Members[i]; r.leg[i] == l {
			lacks := w.count(int(b.Source), m.Acked)
			behind := w.cfg.Policy == mcast.Quorum && m.Acked.Less(b.Acked) // the packet that it lacks first may be gone
			return m.Recovering || lacks == int(index) || behind
		}
	}
	return false
}

func (r *switchState) encodeRepair(b []byte, now time.Duration) []byte {
	b = append(b, byte(len(r.held)))
	for _, h := range r.held {
		b = append(b, byte(h), byte(h>>8), byte(h>>16))
	}
	for i := range r.legs {
		x := &r.legs[i]
		b = append(b, x.top, x.due, flag(x.probed && x.due > 0, 1), x.tries, x.rnrCount)
		b = binary.AppendUvarint(b, uint64(max(x.resumeAt-now, 0)))
	}
	return b
}

func (r *switchState) decodeRepair(b []byte, now time.Duration) []byte {
	n := int(b[0])
	b = b[1:]
	r.held = r.held[:0]
	for range n {
		r.held = append(r.held, mcast.Handle(b[0])|mcast.Handle(b[1])<<8|mcast.Handle(b[2])<<16)
		b = b[3:]
	}
	for i := range r.legs {
		x := &r.legs[i]
		*x = legState{top: b[0], due: b[1], probed: b[2] != 0, tries: b[3], rnrCount: b[4]}
		d, k := binary.Uvarint(b[5:])
		if d > 0 {
			x.resumeAt = now + time.Duration(d)
		}
		b = b[5+k:]
	}
	return b
}
