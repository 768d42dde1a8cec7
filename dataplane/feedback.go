// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// lastACK is the ACK that was staged last for a group's source, while it can still be
// overwritten.
type lastACK struct {
	batchNumber uint64 // the batch in which it was staged, by worker.batchNumber; 0: there is none
	to          mcast.MemberID
	txIndex     int  // the index in the port's tx
	becn        bool // BECN of this ACK, or of one that it replaced
	traced      tracedACK
}

// sourceMarks are fields of the source's last packet that was served. Its requester expects MigReq as it
// sends it, from one peer: members whose RNICs differ would have it change from ACK to ACK.
type sourceMarks struct {
	migReq bool
	tos    uint8
}

func (m *sourceMarks) note(f *rocev2.Frame) { m.migReq, m.tos = f.BTH().MigReq(), trafficClass(f) }

// stageFeedback stages one packet for the group's source. cause is the packet that caused
// it, whose traffic class it takes over; nil if a deadline did: then it has that of the source.
// MigReq is that of the source.
//
// An ACK acknowledges everything that earlier ones do, and all frames staged in one batch
// leave at the same time. So a later ACK of a batch replaces the earlier one, unless a
// NAK was staged between them. The congestion signals of the replaced ACKs are carried by
// the last one (R32).
func (w *worker) stageFeedback(fb *mcast.Feedback, cause *rocev2.Frame) {
	g := &w.groups[fb.Group]
	m := g.member(fb.To)
	l := &g.legs[m.leg]
	if l.port < 0 {
		w.count.drop[dropNoLocation]++
		return
	}
	p := w.ports[l.port]
	if !l.isUp(p) {
		w.count.drop[dropNeighbourDown]++
		return
	}
	ack := fb.Op == rocev2.Acknowledge && fb.Syndrome.Kind() == rocev2.KindACK
	if ack {
		w.meters.acknowledged(w.now, fb.Group, fb.To, fb.PSN)
	}
	path := rocev2.Path{
		SrcMAC: p.mac, DstMAC: l.nextHop(p), Tagged: l.vlan != 0, TCI: l.vlan,
		Src: g.ip, Dst: m.ip, SrcPort: sourcePort(m.qpn),
	}
	path.TOS = g.source.tos &^ 3 // feedback is not ECN-capable
	pkt := rocev2.Packet{
		Op: fb.Op, BECN: fb.BECN, MigReq: g.source.migReq, DestQP: m.qpn, PSN: fb.PSN, Syndrome: fb.Syndrome, MSN: fb.MSN,
	}
	if l.kind == mcast.Forwarded { // to the group at the next switch, in the name of the source that it is for (R18)
		path.Src, path.Dst, pkt.DestQP = m.ip, g.ip, g.qpn
	}
	if cause != nil {
		_, tci := cause.VLAN()
		path.TCI |= tci &^ vidMask
		path.TOS = trafficClass(cause) &^ 3
		if cause.Src() == m.ip {
			pkt.MigReq = cause.BTH().MigReq()
		}
	}
	var payload []byte
	if fb.Op == rocev2.CNP {
		payload, pkt.BECN = rocev2.CNPPayload, true
	}
	if last := &g.lastACK; ack && last.batchNumber == w.batchNumber && last.to == fb.To {
		// The new packet has the same length: neither path nor format of a group's ACKs
		// changes within a batch.
		pkt.BECN = pkt.BECN || last.becn
		last.becn = pkt.BECN
		n := rocev2.BuildPacket(w.umem.Frame(p.staged[last.txIndex].Addr), &path, &pkt, payload)
		if w.tracing != nil {
			w.traceReplaced(&last.traced, l.port, w.umem.Data(p.staged[last.txIndex].Addr, uint32(max(n, minFrame))))
		}
		return
	}
	buf, ok := w.beginFrame(l.port)
	if !ok {
		return
	}
	w.endFrame(l.port, rocev2.BuildPacket(buf, &path, &pkt, payload))
	w.count.feedbackOut++
	switch n := len(p.staged); {
	case ack && n > 0 && p.staged[n-1].Addr == w.buildAddr: // otherwise it is in the egress queue
		g.lastACK = lastACK{batchNumber: w.batchNumber, to: fb.To, txIndex: n - 1, becn: pkt.BECN}
	case fb.Op == rocev2.Acknowledge:
		g.lastACK.batchNumber = 0
	}
	if w.tracing != nil {
		g.lastACK.traced = w.tracing.acks
	}
}

// trafficClass returns the TOS of an IPv4 frame, or the traffic class of an IPv6 frame.
func trafficClass(f *rocev2.Frame) uint8 {
	if f.IsIPv6() {
		return f.IPv6().TrafficClass()
	}
	return f.IPv4().TOS()
}
