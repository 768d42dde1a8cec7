// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// prepareBody is one segment of the group, with the records of its members.
type prepareBody struct {
	master     netip.AddrPort
	tx         uint32
	left       time.Duration // the time within which the answer is needed
	origin     uint64        // the epoch with which the group's life began
	generation uint64        // the generation of the attempt, within that life
	known      uint32        // members with higher numbers are new in the group
	group      GroupBody     // Base: the epoch that is updated, the attempt's own for a rebuild
	behind     []bool        // true: the member is behind the receiver; by record
	numbers    []uint32      // numbers by record
}

// isConsecutive reports whether each number is one more than that before it.
func isConsecutive(ns []uint32) bool {
	for i := range ns {
		if ns[i] != ns[0]+uint32(i) {
			return false
		}
	}
	return true
}

func (p *prepareBody) append(b []byte, v6 bool) (_ []byte, err error) {
	be := binary.BigEndian
	b = append(b, p.master.Addr().AsSlice()...)
	b = be.AppendUint16(b, p.master.Port())
	b = be.AppendUint32(b, p.tx)
	b = be.AppendUint64(b, uint64(p.left))
	b = be.AppendUint64(b, p.origin)
	b = be.AppendUint64(b, p.generation)
	b = be.AppendUint32(b, p.known)
	if b, err = p.group.append(b, v6); err != nil {
		return nil, err
	}
	at := len(b)
	b = append(b, make([]byte, (len(p.behind)+7)/8)...)
	for i, set := range p.behind {
		if set {
			b[at+i/8] |= 0x80 >> (i % 8)
		}
	}
	if isConsecutive(p.numbers) {
		return be.AppendUint32(append(b, 0), p.numbers[0]), nil
	}
	b = append(b, 1)
	for _, n := range p.numbers {
		b = be.AppendUint32(b, n)
	}
	return b, nil
}

func parsePrepare(r *reader, v6 bool) *prepareBody {
	a := r.addr(v6)
	p := &prepareBody{master: netip.AddrPortFrom(a, r.u16())}
	p.tx, p.left = r.u32(), r.duration()
	p.origin, p.generation, p.known = r.u64(), r.u64(), r.u32()
	p.group = parseGroup(r, v6)
	if len(p.group.Members) == 0 {
		r.fail("no member")
		return p
	}
	bits := r.take((len(p.group.Members) + 7) / 8)
	if bits == nil {
		return p
	}
	p.behind = make([]bool, len(p.group.Members))
	for i := range p.behind {
		p.behind[i] = bits[i/8]&(0x80>>(i%8)) != 0
	}
	p.numbers = parseNumbers(r, len(p.group.Members))
	if p.left == 0 || !unicast(p.master.Addr()) || p.master.Addr().Is4In6() || p.master.Port() == 0 || p.origin == 0 || p.generation == 0 {
		r.fail("master, time, origin or generation")
	}
	return p
}

// parseNumbers returns the numbers of n members. Each has one, and numbers that are
// consecutive are written as such.
func parseNumbers(r *reader, n int) []uint32 {
	ns := make([]uint32, n)
	each := r.u8()
	for i := range ns {
		switch {
		case i == 0 || each != 0:
			ns[i] = r.u32()
		default:
			ns[i] = ns[0] + uint32(i)
		}
	}
	if each > 1 || each == 1 && isConsecutive(ns) || slices.Contains(ns, 0) {
		r.fail("numbers of members")
	}
	return ns
}

// numbersLen is the length of the numbers of n members in bytes, at most.
func numbersLen(n int) int { return 1 + 4*n }

// prepareFit returns how many of ms, with these numbers, fit room bytes.
func prepareFit(ms []MemberRecord, ns []uint32, v6 bool, room int) int {
	n := segmentFit(ms, v6, room-numbersLen(1))
	if isConsecutive(ns[:n]) {
		return n
	}
	low := 0 // the highest number of records that is known to fit
	for high := n + 1; low+1 < high; {
		if k := (low + high) / 2; segmentFit(ms[:k], v6, room-numbersLen(k)) == k {
			low = k
		} else {
			high = k
		}
	}
	return low
}

// prepareSegments returns the Prepare of g for neighbour to, or nil if it has gone or its
// link takes not even one record.
func (r *Registrar) prepareSegments(g *group, n mcast.Neighbor) (segments [][]byte) {
	to := r.neighbours[n]
	if to == nil {
		return nil
	}
	b, v6 := g.branch, g.reg.Group.Is6()
	body := g.reg.groupBody(nil)
	body.Base = b.base
	const fixed, bitmap = 16 + 2 + 4 + 8 + 8 + 8 + 4, 64
	room := relayRoom(to.MTU, v6) - fixed - bitmap - body.size()
	var parts []*relay
	ns := g.reg.numbers()
	for at, ms := 0, g.reg.Members; at < len(ms); {
		k := prepareFit(ms[at:], ns[at:], v6, room)
		if k == 0 {
			return nil
		}
		p := &prepareBody{
			master: g.reg.Master, tx: g.tx, left: b.left - b.left/8, origin: g.reg.Origin, generation: g.generation, known: g.known,
			group: body, behind: make([]bool, k), numbers: ns[at : at+k],
		}
		p.group.Members = ms[at : at+k]
		for i := range p.behind {
			p.behind[i] = g.reg.Tree.Legs[at+i] == n
		}
		parts = append(parts, &relay{kind: relayPrepare, hops: b.hops + 1, id: b.id, group: g.reg.Group, prepare: p})
		at += k
	}
	for i, m := range parts {
		m.seq, m.total = uint16(i), uint16(len(parts))
		segments = append(segments, encodeRelay(m))
	}
	return segments
}
