// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Private data of a member's REQ:
//
//	0 "GLCM"  4 version  5 flags  6 key id(16)  8 the switch's nonce(64)  16 window: base(64), length(64), R_Key(32)
//	36 expected members(16)  38 reserved(16)  40 MAC(128)
const (
	privateMagic   = "GLCM"
	privateVersion = 2
	privateNonceAt = 8
	privateMACAt   = 40
	privateLen     = 56

	flagWindow      = 1
	flagReceiveOnly = 2
	flagCreate      = 4 // expected members follow
)

// privateLabel begins what the MAC covers, so that no other message of the key is one.
const privateLabel = "gleam: member by RDMA-CM\x00"

// private is what a member says of itself.
type private struct {
	key         uint16
	receiveOnly bool
	window      mcast.Window
	expect      int // members of the group that the REQ makes if there is none; 0: it makes none
}

// versionOf returns the version of private data of ours; 0: it is another program's.
func versionOf(b []byte) byte {
	if len(b) < privateLen || string(b[:4]) != privateMagic {
		return 0
	}
	return b[4]
}

// readPrivate reads the private data of a REQ; ok is false if it is that of another
// program, or has a field that cannot be.
func readPrivate(b []byte) (p private, ok bool) {
	if versionOf(b) != privateVersion || b[5]&^(flagWindow|flagReceiveOnly|flagCreate) != 0 || binary.BigEndian.Uint16(b[38:]) != 0 {
		return p, false
	}
	p.key, p.receiveOnly = binary.BigEndian.Uint16(b[6:]), b[5]&flagReceiveOnly != 0
	p.window = mcast.Window{Base: binary.BigEndian.Uint64(b[16:]), Len: binary.BigEndian.Uint64(b[24:]), RKey: binary.BigEndian.Uint32(b[32:])}
	p.expect = int(binary.BigEndian.Uint16(b[36:]))
	return p, (b[5]&flagWindow != 0) == (p.window.Len > 0) && (b[5]&flagCreate != 0) == (p.expect > 0)
}

// privateMAC returns the MAC of private data for a member's queue pair.
func privateMAC(key []byte, group, member netip.Addr, port uint16, qpn rocev2.QPN, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(privateLabel))
	g, m := group.As16(), member.As16()
	h.Write(g[:])
	h.Write(m[:])
	h.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, port), uint32(qpn)))
	h.Write(b[:privateMACAt])
	return h.Sum(nil)[:privateLen-privateMACAt]
}

// authentic reports whether the private data b of a REQ has the right MAC.
func (r *Request) authentic(key []byte, port uint16, b []byte) bool {
	return hmac.Equal(privateMAC(key, r.Dst, r.Src, port, r.QPN, b), b[privateMACAt:privateLen])
}
