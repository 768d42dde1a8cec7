// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// readTargets sets p.Targets to the records of the target message in w.frame. Records for
// addresses that are not members are skipped; a payload that does not consist of whole
// records gives no targets, and the core rejects it.
func (w *worker) readTargets(id mcast.GroupID, p *mcast.Packet) {
	w.targetScratch = w.targetScratch[:0]
	b, v4 := w.frame.PayloadIn(w.payload[:]), p.Group.Is4()
	for first := true; ; first = false {
		r, rest, ok := envelope.ParseTarget(b, first, v4)
		if !ok {
			if len(rest) == 0 {
				p.Targets = w.targetScratch
			}
			return
		}
		b = rest
		if m, ok := w.core.Group(id).Member(r.IP); ok {
			w.targetScratch = append(w.targetScratch, mcast.Target{Member: m, VA: r.VA, RKey: r.RKey})
		}
	}
}

// copyAsEmptyWrite stages, in place of the target message f, a WRITE of no bytes with its
// PSN: the receiver consumes the PSN and the message, and checks neither address nor
// R_Key (C9-88). The length changes, so the ICRC is computed anew; that of the message
// has been verified.
func (w *worker) copyAsEmptyWrite(c *mcast.Copy, f *rocev2.Frame, g *groupTable, l *leg) {
	path, pkt := emptyWrite(c, f, g, l, w.ports[l.port])
	if buf, ok := w.beginFrame(l.port); ok {
		n := rocev2.BuildPacket(buf, &path, &pkt, nil)
		if l2Len := l.l2Len(); n > l2Len {
			w.ports[l.port].mark(buf[l2Len:n])
		}
		w.endFrame(l.port, n)
		w.count.copies++
	}
}

// emptyWrite returns the WRITE of no bytes that the leg's member gets in the place of f.
func emptyWrite(c *mcast.Copy, f *rocev2.Frame, g *groupTable, l *leg, p *port) (path rocev2.Path, pkt rocev2.Packet) {
	bth := f.BTH()
	_, tci := f.VLAN()
	path = rocev2.Path{
		SrcMAC: p.mac, DstMAC: l.mac, Tagged: l.vlan != 0, TCI: tci&^vidMask | l.vlan,
		Src: g.ip, Dst: l.addr(), TOS: trafficClass(f), SrcPort: f.UDP().SrcPort(),
	}
	if f.IsIPv6() {
		path.TTL, path.FlowLabel = f.IPv6().HopLimit(), f.IPv6().FlowLabel()
	} else {
		path.TTL, path.ID = f.IPv4().TTL(), f.IPv4().ID()
	}
	pkt = rocev2.Packet{
		Op: rocev2.WriteOnly, SE: bth.SE(), MigReq: bth.MigReq(), AckReq: bth.AckReq() || c.Flags&mcast.SetAckReq != 0, PKey: bth.PKey(),
		DestQP: l.qpn, PSN: c.PSN,
	}
	return path, pkt
}
