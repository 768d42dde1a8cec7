// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The encoding of the packets that a group holds.

func (g *group) appendHeld(b []byte, now time.Duration) []byte {
	h := &g.repair.store.held
	b = append(appendCounts(b, len(h.packets)-h.first), bit(h.lost, 0))
	if g.is(holding) {
		b = appendTime(b, now, h.since)
	}
	for i := h.first; i < len(h.packets); i++ {
		p := &h.packets[i]
		b = append(b, byte(p.Op), bit(p.AckReq, 0)|bit(p.BECN, 1))
		b = appendPSN(b, p.PSN)
		for _, v := range []uint64{uint64(p.Port), uint64(p.Payload), p.VA, uint64(p.RKey), uint64(p.DMALen), uint64(p.Frame), uint64(p.RetainBytes)} {
			b = binary.AppendUvarint(b, v)
		}
	}
	return b
}

// held reads the held packets. The source of the group has been read.
func (r *stateReader) held(g *group) {
	s := g.repair.store
	n := r.count()
	lost := r.byte()
	if n > s.size() {
		r.malformed, n = true, 0
	}
	s.held.packets, s.held.lost = append(s.held.packets, make([]Packet, n)...), lost != 0
	if g.set(holding, n != 0); n != 0 && g.src.member == none {
		r.malformed = true
		return
	}
	if n != 0 {
		s.held.since = r.time()
	}
	for i := range s.held.packets {
		op, f := rocev2.Opcode(r.byte()), r.byte()
		p := Packet{
			Group: g.ip.Addr(), Src: g.members[g.src.member].ip.Addr(), Neighbor: g.src.neighbor, DestQP: g.qpn, Verified: true,
			Op: op, AckReq: f&1 != 0, BECN: f&2 != 0, PSN: r.psn(),
			Port: Port(r.uvarint()), Payload: uint16(r.uvarint()), VA: r.uvarint(), RKey: uint32(r.uvarint()), DMALen: uint32(r.uvarint()),
			Frame: Handle(r.uvarint()), RetainBytes: uint32(r.uvarint()),
		}
		s.held.packets[i] = p
		s.countHeld(int64(p.RetainBytes))
	}
}
