// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// maxFeedback is the number of packets reserved for feedback: at most an ACK and a NAK
// for one input, and as many when a member is evicted.
const maxFeedback = 4

// servePacket serves one received packet, given by one descriptor for each of its
// buffers. It dispatches on the kind of packet; afterwards the buffers are in a TX ring,
// retained, or back in the pool.
func (w *worker) servePacket(pi int, ds ...xsk.Desc) {
	if w.tracing != nil {
		w.traceReceived(pi, ds)
	}
	if ds = w.decode(ds); ds == nil {
		w.traceServed()
		return
	}
	keep := false
	switch w.frame.Kind {
	case rocev2.KindRoCE:
		keep = w.serveRoCE(pi, ds)
	case rocev2.KindARP, rocev2.KindICMPv6, rocev2.KindUDP, rocev2.KindICMP, rocev2.KindMAD:
		w.serveOther(pi)
	default:
		w.count.drop[dropNotGroup]++
	}
	if !keep {
		w.freeFrames(ds)
	}
	if w.tracing != nil {
		w.traceServed()
	}
}

// serveRoCE passes a RoCEv2 packet to the core and executes the output. It returns true
// if the received buffers themselves were sent on, or are retained.
func (w *worker) serveRoCE(pi int, ds []xsk.Desc) (sentOn bool) {
	f, p := &w.frame, &w.pkt
	packetOf(f, mcast.Port(pi), p)
	p.Group = w.aliases.of(p.Group, p.DestQP)
	id, ok := w.core.Lookup(p.Group)
	if !ok {
		w.countInput(p.Op)
		w.core.Input(w.now, p, &w.out)
		w.count.core[w.out.Drop]++
		return false
	}
	if !w.sourceGuard(id, pi, p) {
		w.count.drop[dropSourceGuard]++
		if p.Neighbor == 0 {
			w.reportSighting(pi, p.Src)
		}
		return false
	}
	if w.groups[id].acrossIsolated && w.ports[pi].isolated && p.Op.Is(rocev2.OpRequest) {
		w.count.drop[dropIsolated]++
		return false
	}
	if p.Neighbor == 0 && isNegative(p.Op, p.Syndrome) && !w.ports[pi].policers.naks.Allow(w.now) {
		w.count.drop[dropRateLimit]++
		return false
	}
	w.reportBefore(id)
	if w.out.MaxResends, ok = w.reserve(id, p.Op, len(ds)); !ok && w.anyStaged() {
		w.flush() // completions free frames
		w.out.MaxResends, ok = w.reserve(id, p.Op, len(ds))
	}
	if !ok {
		w.count.drop[dropNoFrame]++
		return false
	}
	if w.core.Group(id).IsTargetMessage(p) {
		w.readTargets(id, p)
	}
	p.Frame, p.RetainBytes = w.retained.handleOf(ds[0].Addr), uint32(len(ds)*w.umem.FrameSize())
	w.countInput(p.Op)
	if !w.inputGroup(id, f, p) {
		w.count.drop[dropBadICRC]++
		return false
	}
	if w.out.Drop != mcast.None {
		w.count.core[w.out.Drop]++
	}
	served := p.Op.Is(rocev2.OpRequest) && (w.out.Drop == mcast.None || w.out.Retained)
	if served {
		w.groups[id].source.note(f)
	}
	w.sendFeedback(f) // before the last copy overwrites the frame
	if served {
		w.meterData(w.now, id, p)
	}
	w.retained.forgetDecoded()
	w.fast.refused = w.fast.refused[:0]
	if w.out.Retained {
		w.retained.retain(ds)
		w.traceRetained()
	}
	last := len(w.out.Copies) - 1
	for i := range w.out.Copies {
		switch c := &w.out.Copies[i]; {
		case c.Frame != p.Frame:
			w.copyRetained(c)
		case w.tracing != nil:
			sentOn = w.copyTraced(trace.Copied, c, f, ds, i == last && !w.out.Retained) || sentOn
		case w.copy(c, f, ds, i == last && !w.out.Retained):
			sentOn = true
		}
	}
	w.retained.release(w.out.Freed, w.pool)
	sentOn = sentOn || w.out.Retained
	w.obeyOrders(p.Op.Is(rocev2.OpRequest)) // may call the core
	return sentOn
}

// inputGroup passes a packet of group id to the core. It returns false, with nothing
// changed, if the core needs to believe the packet and its ICRC is wrong.
//
// The core believes most feedback, which is short: its ICRC is checked beforehand, so that
// an ACK goes through the core once. Requests are long, and the core needs the ICRC of few.
func (w *worker) inputGroup(id mcast.GroupID, f *rocev2.Frame, p *mcast.Packet) (ok bool) {
	feedback := !p.Op.Is(rocev2.OpRequest)
	p.Verified = feedback && f.VerifyICRC()
	w.coreCalls++
	w.core.InputGroup(w.now, id, p, &w.out)
	if w.out.NeedVerify {
		if feedback || !f.VerifyICRC() {
			return false
		}
		p.Verified = true
		w.coreCalls++
		w.core.InputGroup(w.now, id, p, &w.out)
	}
	if w.out.NeedRevoke {
		return w.takeBackFor(id, f, p)
	}
	return true
}

// serveOther serves packets other than RoCEv2, within the port's limits.
func (w *worker) serveOther(pi int) {
	switch p := w.ports[pi]; {
	case w.frame.Kind == rocev2.KindUDP && p.neighbour.from(w.frame.Eth().Src()) != 0: // the slots bound it
		if isReport(w.frame.UDPPayload()) {
			w.serveReport(pi, p.neighbour.id)
			return
		}
		w.queueEnvelope(pi)
	case w.forControl() && !p.policers.allowEnvelope(w.now, w.frame.Src()),
		!w.forControl() && !p.policers.neighbours.Allow(w.now):
		w.count.drop[dropRateLimit]++
	case w.frame.Kind == rocev2.KindMAD:
		w.queueMAD(pi)
	case w.frame.Kind == rocev2.KindUDP:
		w.queueEnvelope(pi)
	case w.frame.Kind == rocev2.KindARP || rocev2.IsNeighborSolicitation(&w.frame):
		w.serveNeighbour(pi)
	default:
		w.serveEcho(pi)
	}
}

// forControl reports whether the decoded packet is one for the control plane: an envelope, or
// a management datagram of RDMA-CM.
func (w *worker) forControl() bool {
	return w.frame.Kind == rocev2.KindUDP || w.frame.Kind == rocev2.KindMAD
}

// sendFeedback stages the feedback of the last output and lists the groups with events.
// cause is the packet that caused it; nil for a deadline.
func (w *worker) sendFeedback(cause *rocev2.Frame) {
	if w.tracing != nil {
		w.accountParent()
	}
	for i := range w.out.Feedback {
		w.stageFeedback(&w.out.Feedback[i], cause)
	}
	for i := range w.out.Probes {
		w.sendKeepalive(&w.out.Probes[i])
	}
	for i := range w.out.Reports {
		w.sendReport(&w.out.Reports[i])
	}
	for i := range w.out.Events {
		e := &w.out.Events[i]
		w.meterEvent(e)
		switch e.Kind {
		case mcast.MemberEvicted:
			w.groups[e.Group].markGone(e.Member)
		case mcast.SourceChanged:
			if f := w.fast.of(e.Group); f != nil {
				f.unset()
			}
		}
		w.changed.add(e.Group)
	}
	if w.tracing != nil {
		w.traceReplies()
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

// reserve reports whether there are free frames for everything that one packet of group
// id, in the given number of buffers, can cause. It is called before the core, because
// the core's state must not change for a packet that cannot be served. A request can
// cause a copy for each member, any other packet only feedback. repairs is the number of
// copies of retained packets that there are frames for in addition, as Output.MaxResends.
//
// Room at the ports is not checked here: a copy that a port does not admit concerns only
// the members behind that port (copy, legResends), and feedback has reserved room.
func (w *worker) reserve(id mcast.GroupID, op rocev2.Opcode, buffers int) (repairs int, ok bool) {
	need := maxFeedback
	if op.Is(rocev2.OpRequest) {
		need += w.groups[id].maxCopies
	}
	spare := w.reserveFrames(need+maxResends, max(buffers, w.retained.maxBuffers)) - need // retained packets may be longer
	return maxResendsOf(min(spare, maxResends)), spare >= 0
}

// packetOf sets p to the contents of a decoded RoCEv2 frame from port in.
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

// groupTable is the worker's state of a group beside the core's: the headers for its
// legs. It is parallel to mcast.GroupSpec by LegID and MemberID.
type groupTable struct {
	ip             netip.Addr
	qpn            rocev2.QPN
	pmtu           int
	legs           []leg
	members        []member // members by MemberID; nil: each has the leg of its own number
	maxCopies      int      // legs with a member and a location: the most copies that one packet has
	maxBuffers     int      // buffers of the group's longest packet
	acrossIsolated bool     // members are behind several isolated ports
	forwards       bool     // true: there are forwarded legs
	layout         uint32
	maxFrameBytes  int // bytes of its longest packet on a link, without FCS, preamble and gap; 0: the port's limit
	lastACK        lastACK
	source         sourceMarks
	optLen         int16      // the length of deltaSource's IPv4 options
	ipv4           uint32     // ip in an IPv4 header
	deltaSource    netip.Addr // the source that leg.delta is for
}

// member returns the address of feedback to member k.
func (t *groupTable) member(k mcast.MemberID) member {
	if t.members != nil {
		return t.members[k]
	}
	l := &t.legs[k]
	return member{ip: l.ip.Addr(), qpn: l.qpn, leg: mcast.LegID(k), gone: l.live == 0}
}

// member is the address of feedback while this member is the source.
type member struct {
	ip   netip.Addr
	qpn  rocev2.QPN
	leg  mcast.LegID
	gone bool // true: the member has left or was evicted
}
