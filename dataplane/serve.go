// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// spareFeedback is room kept for packets that the core makes by itself: at most
// an ACK and a NAK for one input, and as much again when a member is evicted.
const spareFeedback = 4

// input serves one received packet, one descriptor for each of its buffers: it
// finds out what it is and sees to it that they end in the TX ring or back in the
// pool.
func (w *worker) input(pi int, ds ...xsk.Desc) {
	if ds = w.decode(ds); ds == nil {
		return
	}
	keep := false
	switch w.frame.Kind {
	case rocev2.KindRoCE:
		keep = w.roce(pi, ds)
	case rocev2.KindARP, rocev2.KindICMPv6, rocev2.KindUDP, rocev2.KindICMP:
		w.control(pi)
	default:
		w.count.drop[DropNotGroup]++
	}
	if !keep {
		w.free(ds)
	}
}

// roce passes a RoCEv2 packet through the core and does what it says. It
// returns true if the received buffers themselves were sent on, or are kept.
func (w *worker) roce(pi int, ds []xsk.Desc) (used bool) {
	f, p := &w.frame, &w.pkt
	packetOf(f, mcast.Port(pi), p)
	id, ok := w.sw.Lookup(p.Group)
	if !ok {
		w.countInput(p.Op)
		w.sw.Input(w.now, p, &w.out)
		w.count.core[w.out.Drop]++
		return false
	}
	if !w.atHome(id, pi, p.Src) {
		w.count.drop[DropWrongPlace]++
		w.sight(pi, p.Src)
		return false
	}
	if w.groups[id].split && w.ports[pi].isolated && p.Op.Is(rocev2.OpRequest) {
		w.count.drop[DropIsolated]++
		return false
	}
	if negative(p.Op, p.Syndrome) && !w.ports[pi].naks.take(w.now) {
		w.count.drop[DropRateLimit]++
		return false
	}
	if w.out.MaxRepairs, ok = w.room(id, p.Op, len(ds)); !ok && w.staged() {
		w.flush() // frames come back
		w.out.MaxRepairs, ok = w.room(id, p.Op, len(ds))
	}
	if !ok {
		w.count.drop[DropNoFrame]++
		return false
	}
	if w.sw.IsUpdate(id, p) {
		w.readTargets(id, p)
	}
	p.Frame, p.Bytes = w.handleOf(ds[0].Addr), uint32(len(ds)*w.umem.FrameSize())
	w.countInput(p.Op)
	w.turn++
	w.sw.InputTo(w.now, id, p, &w.out)
	if w.out.NeedVerify {
		if !f.VerifyICRC() {
			w.count.drop[DropBadICRC]++
			return false
		}
		p.Verified = true
		w.sw.InputTo(w.now, id, p, &w.out)
	}
	if w.out.Drop != mcast.None {
		w.count.core[w.out.Drop]++
	}
	w.emit(f) // before the last copy writes over the frame
	w.isDecoded = false
	if w.out.Held {
		w.keep(ds)
	}
	last := len(w.out.Copies) - 1
	for i := range w.out.Copies {
		switch c := &w.out.Copies[i]; {
		case c.Frame != p.Frame:
			w.copyKept(c)
		case w.copy(c, f, ds, i == last && !w.out.Held):
			used = true
		}
	}
	w.release()
	return used || w.out.Held
}

// control serves what is not RoCEv2, as fast as the port's limit allows.
func (w *worker) control(pi int) {
	switch p := w.ports[pi]; {
	case w.frame.Kind == rocev2.KindUDP && !(p.senders.take(w.now, w.frame.Src()) && p.envelopes.take(w.now)),
		w.frame.Kind != rocev2.KindUDP && !p.neighbours.take(w.now):
		w.count.drop[DropRateLimit]++
	case w.frame.Kind == rocev2.KindUDP:
		w.envelope(pi)
	case w.frame.Kind == rocev2.KindARP || rocev2.IsNeighborSolicitation(&w.frame):
		w.neighbour(pi)
	default:
		w.echo(pi)
	}
}

// emit sends the feedback of the last output and lists the groups with events. cause is
// the packet that brought it about, nil for a deadline.
func (w *worker) emit(cause *rocev2.Frame) {
	for i := range w.out.Feedback {
		w.feedback(&w.out.Feedback[i], cause)
	}
	for i := range w.out.Probes {
		w.keepalive(&w.out.Probes[i])
	}
	for i := range w.out.Events {
		e := &w.out.Events[i]
		if e.Kind == mcast.MemberEvicted {
			w.groups[e.Group].leave(e.Member)
		}
		w.news.add(e.Group)
	}
}

func (w *worker) countInput(op rocev2.Opcode) {
	switch {
	case op.Is(rocev2.OpRequest):
		w.count.dataIn++
	default:
		w.count.feedbackIn++
	}
}

// room reports whether there are frames for everything that one packet of group id,
// in so many buffers, can bring about: it is asked before the core is, because the
// core's state must not change for a packet that cannot be served. A request can bring
// about a copy for each member, anything else feedback only. It also returns for how
// many copies of kept packets there are frames beside, as Output.MaxRepairs has it.
//
// Room at the ports is not asked for: what a port does not take concerns the members
// behind it alone (copy, legRoom), and feedback has room of its own.
func (w *worker) room(id mcast.GroupID, op rocev2.Opcode, buffers int) (repairs int, ok bool) {
	need := spareFeedback
	if op.Is(rocev2.OpRequest) {
		need += w.groups[id].copies
	}
	spare := w.frames(need+maxRepairs, max(buffers, w.chains.longest)) - need // kept packets may be longer
	return orNone(min(spare, maxRepairs)), spare >= 0
}

// frames returns how many packets of so many buffers there are free frames for; if
// frames have to be fetched, as many as want packets take.
func (w *worker) frames(want, buffers int) int {
	return packets(w.pool.Reserve(want*buffers), buffers)
}

// packetOf fills p from a decoded RoCEv2 frame that came in at port in.
func packetOf(f *rocev2.Frame, in mcast.Port, p *mcast.Packet) {
	bth := f.BTH()
	op := bth.Opcode()
	*p = mcast.Packet{}
	p.Group, p.Src, p.Port, p.Op = f.Dst(), f.Src(), in, op
	p.AckReq, p.BECN, p.DestQP, p.PSN = bth.AckReq(), bth.BECN(), bth.DestQP(), bth.PSN()
	p.Payload = uint16(f.PayloadLen())
	switch {
	case op.Is(rocev2.OpRETH):
		r := f.RETH()
		p.VA, p.RKey, p.DMALen = r.VA(), r.RKey(), r.DMALen()
	case op.Is(rocev2.OpIETH):
		p.RKey = f.IETH().RKey()
	case op.Is(rocev2.OpAETH):
		a := f.AETH()
		p.Syndrome, p.MSN = a.Syndrome(), a.MSN()
	}
}

// groupTable is what the worker keeps beside the core's group: where its legs
// lead on the wire. Parallel to mcast.GroupSpec by LegID and MemberID.
type groupTable struct {
	ip      netip.Addr
	qpn     rocev2.QPN
	legs    []leg
	members []member
	copies  int  // legs with a member and a place: the most copies that one packet has
	buffers int  // of its longest packet
	split   bool // members are behind several isolated ports
	longest int  // bytes of that on a link, beside FCS, preamble and gap; 0: what the port takes
	ack     lastAck
}

// member is where feedback goes while this member is the source.
type member struct {
	ip  netip.Addr
	qpn rocev2.QPN
	leg mcast.LegID
}
