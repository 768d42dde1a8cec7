// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// maxFeedback is room kept for packets that the core makes by itself: at most
// an ACK and a NAK for one input, and as much again when a member is evicted.
const maxFeedback = 4

// servePacket serves one received packet, one descriptor for each of its buffers: it
// finds out what it is and sees to it that they end in the TX ring or back in the
// pool.
func (w *worker) servePacket(pi int, ds ...xsk.Desc) {
	if ds = w.decode(ds); ds == nil {
		return
	}
	keep := false
	switch w.frame.Kind {
	case rocev2.KindRoCE:
		keep = w.serveRoCE(pi, ds)
	case rocev2.KindARP, rocev2.KindICMPv6, rocev2.KindUDP, rocev2.KindICMP:
		w.serveOther(pi)
	default:
		w.count.drop[dropNotGroup]++
	}
	if !keep {
		w.freeFrames(ds)
	}
}

// serveRoCE passes a RoCEv2 packet through the core and does what it says. It
// returns true if the received buffers themselves were sent on, or are kept.
func (w *worker) serveRoCE(pi int, ds []xsk.Desc) (sentOn bool) {
	f, p := &w.frame, &w.pkt
	packetOf(f, mcast.Port(pi), p)
	id, ok := w.core.Lookup(p.Group)
	if !ok {
		w.countInput(p.Op)
		w.core.Input(w.now, p, &w.out)
		w.count.core[w.out.Drop]++
		return false
	}
	if !w.sourceGuard(id, pi, p.Src) {
		w.count.drop[dropSourceGuard]++
		w.reportSighting(pi, p.Src)
		return false
	}
	if w.groups[id].acrossIsolated && w.ports[pi].isolated && p.Op.Is(rocev2.OpRequest) {
		w.count.drop[dropIsolated]++
		return false
	}
	if isNegative(p.Op, p.Syndrome) && !w.ports[pi].nakPolicer.allow(w.now) {
		w.count.drop[dropRateLimit]++
		return false
	}
	if w.out.MaxResends, ok = w.reserve(id, p.Op, len(ds)); !ok && w.anyStaged() {
		w.flush() // frames come back
		w.out.MaxResends, ok = w.reserve(id, p.Op, len(ds))
	}
	if !ok {
		w.count.drop[dropNoFrame]++
		return false
	}
	if w.core.IsTargetMessage(id, p) {
		w.readTargets(id, p)
	}
	p.Frame, p.RetainBytes = w.handleOf(ds[0].Addr), uint32(len(ds)*w.umem.FrameSize())
	w.countInput(p.Op)
	w.coreCalls++
	w.core.InputGroup(w.now, id, p, &w.out)
	if w.out.NeedVerify {
		if !f.VerifyICRC() {
			w.count.drop[dropBadICRC]++
			return false
		}
		p.Verified = true
		w.core.InputGroup(w.now, id, p, &w.out)
	}
	if w.out.Drop != mcast.None {
		w.count.core[w.out.Drop]++
	}
	w.sendFeedback(f) // before the last copy writes over the frame
	w.isDecoded = false
	if w.out.Retained {
		w.retain(ds)
	}
	last := len(w.out.Copies) - 1
	for i := range w.out.Copies {
		switch c := &w.out.Copies[i]; {
		case c.Frame != p.Frame:
			w.copyRetained(c)
		case w.copy(c, f, ds, i == last && !w.out.Retained):
			sentOn = true
		}
	}
	w.freeReleased()
	return sentOn || w.out.Retained
}

// serveOther serves what is not RoCEv2, as fast as the port's limit allows.
func (w *worker) serveOther(pi int) {
	switch p := w.ports[pi]; {
	case w.frame.Kind == rocev2.KindUDP && !(p.addressPolicers.allow(w.now, w.frame.Src()) && p.envelopePolicer.allow(w.now)),
		w.frame.Kind != rocev2.KindUDP && !p.neighbourPolicer.allow(w.now):
		w.count.drop[dropRateLimit]++
	case w.frame.Kind == rocev2.KindUDP:
		w.queueEnvelope(pi)
	case w.frame.Kind == rocev2.KindARP || rocev2.IsNeighborSolicitation(&w.frame):
		w.serveNeighbour(pi)
	default:
		w.serveEcho(pi)
	}
}

// sendFeedback sends the feedback of the last output and lists the groups with events. cause is
// the packet that brought it about, nil for a deadline.
func (w *worker) sendFeedback(cause *rocev2.Frame) {
	for i := range w.out.Feedback {
		w.stageFeedback(&w.out.Feedback[i], cause)
	}
	for i := range w.out.Probes {
		w.sendKeepalive(&w.out.Probes[i])
	}
	for i := range w.out.Events {
		e := &w.out.Events[i]
		if e.Kind == mcast.MemberEvicted {
			w.groups[e.Group].markGone(e.Member)
		}
		w.changed.add(e.Group)
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

// reserve reports whether there are frames for everything that one packet of group id,
// in so many buffers, can bring about: it is asked before the core is, because the
// core's state must not change for a packet that cannot be served. A request can bring
// about a copy for each member, anything else feedback only. It also returns for how
// many copies of kept packets there are frames beside, as Output.MaxRepairs has it.
//
// Room at the ports is not asked for: what a port does not take concerns the members
// behind it alone (copy, legResends), and feedback has room of its own.
func (w *worker) reserve(id mcast.GroupID, op rocev2.Opcode, buffers int) (repairs int, ok bool) {
	need := maxFeedback
	if op.Is(rocev2.OpRequest) {
		need += w.groups[id].maxCopies
	}
	spare := w.reserveFrames(need+maxResends, max(buffers, w.chains.maxBuffers)) - need // kept packets may be longer
	return maxResendsOf(min(spare, maxResends)), spare >= 0
}

// reserveFrames returns how many packets of so many buffers there are free frames for; if
// frames have to be fetched, as many as want packets take.
func (w *worker) reserveFrames(want, buffers int) int {
	return wholePackets(w.pool.Reserve(want*buffers), buffers)
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
	ip             netip.Addr
	qpn            rocev2.QPN
	legs           []leg
	members        []member
	maxCopies      int  // legs with a member and a place: the most copies that one packet has
	maxBuffers     int  // of its longest packet
	acrossIsolated bool // members are behind several isolated ports
	maxFrameBytes  int  // bytes of that on a link, beside FCS, preamble and gap; 0: what the port takes
	lastACK        lastACK
}

// member is where feedback goes while this member is the source.
type member struct {
	ip  netip.Addr
	qpn rocev2.QPN
	leg mcast.LegID
}
