// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Append appends m as a MAD of 256 bytes to b. Private data and additional information
// that do not fit are cut off, and so are fields that are too large.
func (m *Message) Append(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, rocev2.MADLen)...)
	h := b[at:]
	h[0], h[1], h[2], h[3] = baseVersion, classCM, classVersion, methodSend
	binary.BigEndian.PutUint64(h[8:], m.TID)
	binary.BigEndian.PutUint16(h[16:], uint16(m.Attribute))
	p := h[headerLen:]
	binary.BigEndian.PutUint32(p, uint32(m.LocalID))
	if m.Attribute != ConnectRequest {
		binary.BigEndian.PutUint32(p[4:], uint32(m.RemoteID))
	}
	switch m.Attribute {
	case ConnectRequest:
		m.Request.put(p)
	case ConnectReply:
		m.Reply.put(p)
	case ConnectReject:
		n := copy(p[ariAt:ariAt+ariMax], m.Reject.ARI)
		p[8], p[9] = uint8(m.Reject.Of)<<6, uint8(n)<<1
		binary.BigEndian.PutUint16(p[10:], uint16(m.Reject.Reason))
	case MsgReceived:
		p[8], p[9] = uint8(m.MRA.Of)<<6, uint8(m.MRA.Timeout)<<3
	case DisconnectRequest:
		put24(p[8:], uint32(m.DREQ.QPN))
	}
	copy(p[dataAt[m.Attribute-firstAttribute]:], m.Data)
	return b
}

func (r *Request) put(b []byte) {
	binary.BigEndian.PutUint64(b[8:], r.ServiceID)
	binary.BigEndian.PutUint64(b[16:], uint64(r.GUID))
	binary.BigEndian.PutUint32(b[28:], r.QKey)
	put24(b[32:], uint32(r.QPN))
	b[35], b[39] = r.ResponderResources, r.InitiatorDepth
	b[43] = uint8(r.RemoteTimeout)<<3 | uint8(r.Service)&3<<1 | bit(r.FlowControl, 1)
	put24(b[44:], uint32(r.PSN))
	b[47] = uint8(r.LocalTimeout)<<3 | r.RetryCount&7
	binary.BigEndian.PutUint16(b[48:], r.PKey)
	b[50] = r.MTU<<4 | r.RNRRetry&7
	b[51] = r.MaxRetries<<4 | bit(r.SRQ, 8)
	binary.BigEndian.PutUint32(b[52:], 0xFFFFFFFF) // permissive LIDs
	putIP(b[56:72], r.LocalGID, true)
	putIP(b[72:88], r.RemoteGID, true)
	binary.BigEndian.PutUint32(b[88:], r.FlowLabel<<12)
	b[92], b[93], b[94], b[95] = r.TrafficClass, r.HopLimit, bit(r.SubnetLocal, 8), uint8(r.AckTimeout)<<3
	b[141] = 4 << 4
	if !r.Src.Is4() {
		b[141] = 6 << 4
	}
	binary.BigEndian.PutUint16(b[142:], r.SrcPort)
	putIP(b[144:160], r.Src, false)
	putIP(b[160:176], r.Dst, false)
}

func (r *Reply) put(b []byte) {
	binary.BigEndian.PutUint32(b[8:], r.QKey)
	put24(b[12:], uint32(r.QPN))
	put24(b[20:], uint32(r.PSN))
	b[24], b[25] = r.ResponderResources, r.InitiatorDepth
	b[26] = uint8(r.AckDelay)<<3 | r.Failover&3<<1 | bit(r.FlowControl, 1)
	b[27] = r.RNRRetry<<5 | bit(r.SRQ, 0x10)
	binary.BigEndian.PutUint64(b[28:], uint64(r.GUID))
}

// putIP writes an address to 16 bytes: one of IPv4 to the last 4, as a GID with the prefix
// of mapped ones.
func putIP(b []byte, a netip.Addr, gid bool) {
	if !a.Is4() {
		x := a.As16()
		copy(b, x[:])
		return
	}
	x := a.As4()
	copy(b[12:], x[:])
	if gid {
		b[10], b[11] = 0xFF, 0xFF
	}
}

func put24(b []byte, v uint32) { b[0], b[1], b[2] = uint8(v>>16), uint8(v>>8), uint8(v) }

func bit(v bool, mask uint8) uint8 {
	if v {
		return mask
	}
	return 0
}
