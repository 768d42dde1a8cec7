// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sendKeepalive stages a keepalive probe, whose answer shows which PSN a member expects
// (docs/AGGREGATION.md, R52): a WRITE of no bytes from GroupIP, whose address and R_Key
// responders do not check (C9-88).
func (w *worker) sendKeepalive(k *mcast.Probe) {
	g := &w.groups[k.Group]
	l := &g.legs[k.Leg]
	if l.port < 0 {
		w.count.drop[dropNoLocation]++
		return
	}
	path := rocev2.Path{
		SrcMAC: w.ports[l.port].mac, DstMAC: l.mac, Tagged: l.vlan != 0, TCI: l.vlan,
		Src: g.ip, Dst: l.addr(), SrcPort: sourcePort(l.qpn),
	}
	pkt := rocev2.Packet{Op: rocev2.WriteOnly, AckReq: true, DestQP: l.qpn, PSN: k.PSN}
	if buf, ok := w.beginFrame(l.port); ok {
		w.endFrame(l.port, rocev2.BuildPacket(buf, &path, &pkt, nil))
		w.count.keepalives++
	}
}

// sourcePort returns the UDP source port of packets that the switch itself sends to a
// queue pair. It is chosen as hosts choose theirs, so that all packets of a pair take the
// same path through the network.
func sourcePort(qpn rocev2.QPN) uint16 { return 0xC000 | uint16(qpn)&0x3FFF }
