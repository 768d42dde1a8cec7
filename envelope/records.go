// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A record section is a list of members, encoded so that the paper's 183 members fit into
// one packet: a value that many records share is written once.
//
//	flags(1) prefixLen(1) count(2) prefix(prefixLen)
//	sq_psn(3)  if the flag sqEach is not set
//	rq_psn(3)  if the flag rqEach is not set
//	bitmap((count+7)/8) if the flag windows is set: bit 7-i%8 of byte i/8 for record i
//	bitmap((count+7)/8) if the flag receivers is set: of the records that only receive
//	count × { address suffix, QPN(3), [sq_psn(3)], [rq_psn(3)], [window(20)] }
//
// The encoder always takes the smallest form; the decoder takes any.
const (
	sqEach     = 1 << 0 // each record has its own sq_psn
	rqEach     = 1 << 1
	hasWindows = 1 << 2 // some records have a window; the bitmap says which
	receivers  = 1 << 3 // some members only receive; the second bitmap says which
)

const (
	sectionLen = 4 // flags, prefixLen, count
	windowLen  = 20
)

// section is the encoded form of a run of members.
type section struct {
	prefix  int // leading address bytes that all members have in common
	sqEach  bool
	rqEach  bool
	windows int // number of records with a window
	receive int // number of receive-only records
	count   int
	v6      bool
}

// add returns the form of s and m together; first is the first member of s.
func (s section) add(first, m *MemberRecord) section {
	if s.count == 0 {
		s.prefix = m.IP.BitLen() / 8
	}
	s.prefix = commonPrefix(first.IP, m.IP, s.prefix)
	s.sqEach = s.sqEach || m.SQPSN != first.SQPSN
	s.rqEach = s.rqEach || m.RQPSN != first.RQPSN
	if m.Window != (mcast.Window{}) {
		s.windows++
	}
	if m.ReceiveOnly {
		s.receive++
	}
	s.count++
	return s
}

// size returns the bytes of a section of this form.
func (s section) size() int {
	addr := 4
	if s.v6 {
		addr = 16
	}
	rec, fixed := addr-s.prefix+3, sectionLen+s.prefix+6
	if s.sqEach {
		rec, fixed = rec+3, fixed-3
	}
	if s.rqEach {
		rec, fixed = rec+3, fixed-3
	}
	if s.windows > 0 {
		fixed += (s.count + 7) / 8
	}
	if s.receive > 0 {
		fixed += (s.count + 7) / 8
	}
	return fixed + s.count*rec + s.windows*windowLen
}

// commonPrefix returns how many of the first limit bytes of a and b are equal.
func commonPrefix(a, b netip.Addr, limit int) int {
	x, y := a.As16(), b.As16()
	off := 0
	if a.Is4() {
		off = 12
	}
	for i := range limit {
		if x[off+i] != y[off+i] {
			return i
		}
	}
	return limit
}

// segmentFit returns how many of ms, from the first on, fit a section of room bytes.
func segmentFit(ms []MemberRecord, v6 bool, room int) int {
	s := section{v6: v6}
	for i := range ms {
		if s = s.add(&ms[0], &ms[i]); s.size() > room {
			return i
		}
	}
	return len(ms)
}

func appendSection(b []byte, ms []MemberRecord, v6 bool) ([]byte, error) {
	s := section{v6: v6}
	for i := range ms {
		m := &ms[i]
		if m.IP.Is6() != v6 || !m.IP.IsValid() || m.IP.Zone() != "" {
			return nil, fmt.Errorf("member %s is not of the GroupIP's family", m.Key())
		}
		if m.QPN > rocev2.PSNMask || m.SQPSN > rocev2.PSNMask || m.RQPSN > rocev2.PSNMask {
			return nil, fmt.Errorf("member %s: QPN, sq_psn and rq_psn have 24 bits", m)
		}
		s = s.add(&ms[0], m)
	}
	if s.count > 0xFFFF {
		return nil, fmt.Errorf("%d members in one message", s.count)
	}
	flags := byte(0)
	if s.sqEach {
		flags |= sqEach
	}
	if s.rqEach {
		flags |= rqEach
	}
	if s.windows > 0 {
		flags |= hasWindows
	}
	if s.receive > 0 {
		flags |= receivers
	}
	b = append(b, flags, byte(s.prefix))
	b = binary.BigEndian.AppendUint16(b, uint16(s.count))
	var first MemberRecord
	if s.count > 0 {
		first = ms[0]
		b = append(b, first.IP.AsSlice()[:s.prefix]...)
	}
	if !s.sqEach {
		b = append24(b, uint32(first.SQPSN))
	}
	if !s.rqEach {
		b = append24(b, uint32(first.RQPSN))
	}
	if s.windows > 0 {
		b = appendBitmap(b, ms, func(m *MemberRecord) bool { return m.Window != mcast.Window{} })
	}
	if s.receive > 0 {
		b = appendBitmap(b, ms, func(m *MemberRecord) bool { return m.ReceiveOnly })
	}
	for i := range ms {
		b = appendRecord(b, &ms[i], s)
	}
	return b, nil
}

// appendBitmap writes a bit for each of ms.
func appendBitmap(b []byte, ms []MemberRecord, has func(*MemberRecord) bool) []byte {
	at := len(b)
	b = append(b, make([]byte, (len(ms)+7)/8)...)
	for i := range ms {
		if has(&ms[i]) {
			b[at+i/8] |= 0x80 >> (i % 8)
		}
	}
	return b
}

func appendRecord(b []byte, m *MemberRecord, s section) []byte {
	b = append(b, m.IP.AsSlice()[s.prefix:]...)
	b = append24(b, uint32(m.QPN))
	if s.sqEach {
		b = append24(b, uint32(m.SQPSN))
	}
	if s.rqEach {
		b = append24(b, uint32(m.RQPSN))
	}
	if m.Window != (mcast.Window{}) {
		b = appendWindow(b, m.Window)
	}
	return b
}

// parseSection reads a record section. Its memory is bounded by the bytes present, not by
// the count that they claim.
func parseSection(r *reader, v6 bool) []MemberRecord {
	addrLen := 4
	if v6 {
		addrLen = 16
	}
	flags, prefixLen, count := r.u8(), int(r.u8()), int(r.u16())
	if flags&^(sqEach|rqEach|hasWindows|receivers) != 0 || prefixLen > addrLen || count == 0 && prefixLen > 0 {
		r.fail("record section")
		return nil
	}
	var ip [16]byte
	copy(ip[:], r.take(prefixLen))
	var sq, rq uint32
	if flags&sqEach == 0 {
		sq = r.u24()
	}
	if flags&rqEach == 0 {
		rq = r.u24()
	}
	var windows, receive []byte
	if flags&hasWindows != 0 {
		windows = r.take((count + 7) / 8)
	}
	if flags&receivers != 0 {
		receive = r.take((count + 7) / 8)
	}
	if count*(addrLen-prefixLen+3) > len(r.b) {
		r.truncated = true
		return nil
	}
	var ms []MemberRecord
	if count > 0 {
		ms = make([]MemberRecord, count)
	}
	for i := range ms {
		m := &ms[i]
		copy(ip[prefixLen:addrLen], r.take(addrLen-prefixLen))
		m.IP, _ = netip.AddrFromSlice(ip[:addrLen])
		m.QPN, m.SQPSN, m.RQPSN = rocev2.QPN(r.u24()), rocev2.PSN(sq), rocev2.PSN(rq)
		if flags&sqEach != 0 {
			m.SQPSN = rocev2.PSN(r.u24())
		}
		if flags&rqEach != 0 {
			m.RQPSN = rocev2.PSN(r.u24())
		}
		m.ReceiveOnly = receive != nil && receive[i/8]&(0x80>>(i%8)) != 0
		if windows != nil && windows[i/8]&(0x80>>(i%8)) != 0 {
			if m.Window = r.window(); m.Window == (mcast.Window{}) {
				r.fail("window of zeros")
			}
		}
	}
	return ms
}
