// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// vidMask selects the VLAN identifier of a TCI; above it are DEI and PCP.
const vidMask = 0x0FFF

// minFrame is the length of the shortest Ethernet frame, without FCS. AF_XDP sends
// exactly the bytes that it is given, and not every driver pads.
const minFrame = 60

// leg holds the headers for the copies of one leg. The control plane sets the first part;
// the rest belongs to the worker.
type leg struct {
	port      int            // index in worker.ports; -1 while the location is not known
	ip        rocev2.AddrKey // Connected only, like mac and qpn
	qpn       rocev2.QPN
	neighbour mcast.Neighbor // Forwarded only; its MAC address is the port's to know
	mac       rocev2.MAC
	vlan      uint16 // VID; 0: untagged
	kind      mcast.LegKind
	hasDelta  bool
	live      uint16 // members behind it that have not left and were not evicted
	delta     uint32 // rocev2.LegDelta from the headers of groupTable.deltaSource to this leg's, if hasDelta; the worker's
}

// addr returns the address of the member that has the leg; none of a leg to a switch.
func (l *leg) addr() netip.Addr {
	if l.kind != mcast.Connected {
		return netip.Addr{}
	}
	return l.ip.Addr()
}

// copy stages one copy of f, which ds describes, and reports whether the copy is in the
// buffers of ds: the last copy of a packet that is not retained reuses them, since all
// others have been made by then.
func (w *worker) copy(c *mcast.Copy, f *rocev2.Frame, ds []xsk.Desc, last bool) bool {
	g := &w.groups[c.Group]
	l := &g.legs[c.Leg]
	if l.port < 0 {
		w.count.drop[dropNoLocation]++
		return false
	}
	p := w.ports[l.port]
	if p.down {
		w.count.drop[dropPortDown]++
		return false
	}
	if !l.isUp(p) {
		w.count.drop[dropNeighbourDown]++
		return false
	}
	if c.Flags&mcast.EmptyWrite != 0 {
		if p.fullAt == w.coreCalls+1 || !w.admitsAfterFlush(p, minFrame, 1) {
			w.deferCopy(p, c)
			return false
		}
		w.copyAsEmptyWrite(c, f, g, l)
		return false
	}
	l3 := f.L3()
	l2Len := l.l2Len()
	n := l2Len + len(l3) // in the first buffer
	length := l2Len + f.Len() - f.L3Offset()
	if length-l2Len > p.mtu || len(ds) > 1 && !p.multiBuffer { // not the packets that the group was registered for
		w.count.drop[dropTooLong]++
		return false
	}
	if p.fullAt == w.coreCalls+1 || !w.admitsAfterFlush(p, max(length, minFrame), len(ds)) {
		w.deferCopy(p, c)
		return false
	}
	addr := ds[0].Addr + uint64(f.L3Offset()) - uint64(l2Len) // the headers below IP may grow or shrink
	if !last || addr < w.umem.Base(ds[0].Addr) {
		if w.pool.Len() < len(ds) { // reserve has been called: cannot happen
			w.count.drop[dropNoFrame]++
			return false
		}
		addr, _ = w.pool.TakeOne()
		copy(w.umem.Frame(addr)[l2Len:], l3)
		last = false
	}
	out := w.umem.Data(addr, uint32(max(n, minFrame)))
	_, tci := f.VLAN() // before the tag is overwritten
	icrc := f.ICRC()   // likewise
	l.putL2(out, f, p, tci)
	switch {
	case l.kind == mcast.Connected:
		icrc ^= l.rewrite(out[l2Len:n], f, c, g, w.ops)
	case c.Flags&mcast.SetAckReq != 0:
		icrc ^= setAckReq(out[l2Len:n], f, w.ops)
	}
	p.mark(out[l2Len:n])
	w.count.copies++
	if len(ds) > 1 {
		w.copyRest(l.port, f, ds, last, addr, out[:n], icrc)
		return last
	}
	binary.LittleEndian.PutUint32(out[n-rocev2.ICRCLen:], icrc)
	clear(out[n:])
	if w.tracing != nil {
		w.traceStaged(l.port, out, nil)
	}
	p.stage(xsk.Desc{Addr: addr, Len: uint32(len(out))})
	return last
}

// l2Len returns the length of the headers below IP.
func (l *leg) l2Len() int {
	if l.vlan != 0 {
		return rocev2.EthernetLen + rocev2.VLANLen
	}
	return rocev2.EthernetLen
}

// putL2 writes the Ethernet header, and the leg's VLAN tag with the priority that the
// frame was received with.
func (l *leg) putL2(out []byte, f *rocev2.Frame, p *port, tci uint16) {
	etherType := rocev2.EtherTypeIPv4
	if f.IsIPv6() {
		etherType = rocev2.EtherTypeIPv6
	}
	e := rocev2.Ethernet(out[:rocev2.EthernetLen])
	e.SetDst(l.nextHop(p))
	e.SetSrc(p.mac)
	if l.vlan == 0 {
		e.SetEtherType(etherType)
		return
	}
	e.SetEtherType(rocev2.EtherTypeVLAN)
	v := rocev2.VLAN(out[rocev2.EthernetLen : rocev2.EthernetLen+rocev2.VLANLen])
	v.SetTCI(tci&^vidMask | l.vlan)
	v.SetEtherType(etherType)
}

// rewrite turns ip, the frame's IP packet, into the packet that the leg's member expects
// from its peer (GroupIP, virtual QPN): RC.md §4. f gives the layout of the packet; the
// bytes of ip may be those of f itself. rewrite returns the difference of the ICRC, which
// it does not write: only the headers must be in ip.
func (l *leg) rewrite(ip []byte, f *rocev2.Frame, c *mcast.Copy, g *groupTable, ops *rocev2.Operators) (icrc uint32) {
	hl := f.L4Offset() - f.L3Offset()
	src := f.Src()
	optLen := int16(0)
	if !f.IsIPv6() {
		optLen = int16(hl - rocev2.IPv4Len)
	}
	if g.deltaSource != src || g.optLen != optLen {
		g.setDeltaSource(src, optLen)
	}
	if !l.hasDelta {
		l.hasDelta, l.delta = true, rocev2.LegDelta(src, g.ip, g.ip, l.ip.Addr(), g.qpn, l.qpn, int(optLen))
	}
	tail := f.Tail()
	op := f.Op
	fields := ops.Fields(op.ExtLen(), tail)

	bth := rocev2.BTH(ip[hl+rocev2.UDPLen:][:rocev2.BTHLen])
	ask := c.Flags&mcast.SetAckReq != 0
	icrc = fields.PSN(l.delta ^ rocev2.DiffBTH2(bth.PSN(), c.PSN, ask))
	bth.SetDestQP(l.qpn)
	bth.SetPSN(c.PSN)
	if ask {
		bth.SetAckReq(true)
	}
	ext := ip[hl+rocev2.UDPLen+rocev2.BTHLen:]
	switch {
	case c.Flags&mcast.SetRETH != 0:
		r := rocev2.RETH(ext[:rocev2.RETHLen])
		icrc ^= fields.RETH(r.VA(), c.VA, r.RKey(), c.RKey)
		r.SetVA(c.VA)
		r.SetRKey(c.RKey)
	case c.Flags&mcast.SetIETH != 0:
		i := rocev2.IETH(ext[:rocev2.IETHLen])
		icrc ^= fields.Ext(0, rocev2.Diff32(i.RKey(), c.RKey))
		i.SetRKey(c.RKey)
	}
	rocev2.UDP(ip[hl : hl+rocev2.UDPLen]).SetChecksum(0)
	if f.IsIPv6() {
		h := rocev2.IPv6(ip[:hl])
		h.SetSrc(g.ip)
		h.SetDst(l.ip.Addr())
		return icrc
	}
	h := rocev2.IPv4(ip[:hl])
	old := binary.BigEndian.Uint64(h[ipv4Addresses:])
	pair := uint64(g.ipv4)<<32 | uint64(uint32(l.ip.Lo))
	h.SetChecksum(rocev2.ChecksumUpdate64(h.Checksum(), old, pair))
	binary.BigEndian.PutUint64(h[ipv4Addresses:], pair)
	return icrc
}

// setAckReq sets AckReq in ip, which otherwise equals the packet of f, and returns the
// difference of the ICRC.
func setAckReq(ip []byte, f *rocev2.Frame, ops *rocev2.Operators) (icrc uint32) {
	hl := f.L4Offset() - f.L3Offset() + rocev2.UDPLen
	bth := rocev2.BTH(ip[hl:][:rocev2.BTHLen])
	bth.SetAckReq(true)
	return ops.Fields(f.Op.ExtLen(), f.Tail()).PSN(rocev2.DiffBTH2(0, 0, true))
}

// ipv4Addresses is the offset of source and destination in an IPv4 header (RFC 791 §3.1).
const ipv4Addresses = 12

// setDeltaSource has the deltas of all legs computed for a source with IPv4 options of a length.
func (t *groupTable) setDeltaSource(src netip.Addr, optLen int16) {
	t.deltaSource, t.optLen, t.ipv4 = src, optLen, uint32(rocev2.KeyOf(t.ip).Lo)
	for i := range t.legs {
		t.legs[i].hasDelta = false
	}
}
