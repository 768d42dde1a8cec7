// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// Chain is a frame in several consecutive buffers: a driver's form of a frame that is
// longer than one buffer. Build it with append, and reuse it.
//
// Only a RoCE frame may be a chain, and only with all headers in the first buffer. The
// other buffers are read only for the ICRC, which may begin in one buffer and end in
// another.
type Chain [][]byte

// DecodeChain is Decode for a frame in c. For a frame in one buffer, and for a frame
// whose IP packet ends in the first buffer, it equals Decode.
//
// It refuses, beyond what Decode refuses, a frame whose headers are not all in
// the first buffer (ReasonSplitHeaders) and one that is not RoCEv2 and does not
// end in the first buffer (ReasonSplitOther).
//
// If the frame is accepted, c is trimmed to it: Ethernet padding, and buffers with
// padding only, are cut off. If the frame continues after the first buffer, f refers to
// c, and c must not be changed while f is in use.
func DecodeChain(c *Chain, f *Frame) Reason {
	*f = Frame{}
	bufs := *c
	if len(bufs) == 0 {
		return ReasonTruncated
	}
	for _, b := range bufs[1:] {
		f.rest += uint32(len(b))
	}
	r := f.decodeEthernet(bufs[0])
	switch {
	case r != OK || f.rest == 0:
	case f.Kind != KindRoCE:
		r = ReasonSplitOther
	case int(f.payloadOff) > len(f.buf):
		r = ReasonSplitHeaders
	}
	if r != OK {
		*f = Frame{}
		return r
	}
	c.trimToIP(f)
	return OK
}

// trimToIP cuts c at the end of f, and makes f refer to c if f is longer than its first
// buffer.
func (c *Chain) trimToIP(f *Frame) {
	bufs := *c
	bufs[0] = f.buf
	n := 1
	for left := int(f.rest); left > 0; n++ { // continues has checked that the buffers have enough bytes
		bufs[n] = bufs[n][:min(len(bufs[n]), left)]
		left -= len(bufs[n])
		f.chain = c
	}
	*c = bufs[:n]
}

// short returns the reason why the headers are not all in the first buffer, which lacks
// missing bytes of them: these may be in the other buffers, or nowhere.
func (f *Frame) short(missing int) Reason { return f.shortOr(ReasonTruncated, missing) }

// shortOr is short, with reason r for missing headers.
func (f *Frame) shortOr(r Reason, missing int) Reason {
	if missing > int(f.rest) {
		return r
	}
	return ReasonSplitHeaders
}

// shortBTH returns the fault of a UDP payload whose part in the first buffer, p, is
// shorter than BTH and ICRC. The ICRC may be in another buffer.
func (f *Frame) shortBTH(p []byte) Reason {
	if len(p)+int(f.rest) < BTHLen+ICRCLen {
		return ReasonBadBTHLength
	}
	if len(p) < BTHLen {
		return ReasonSplitHeaders
	}
	return OK
}

// continues checks whether an IP packet of n bytes, with a header of hl, may continue
// after its first bytes p, and sets f.more to its bytes in other buffers.
func (f *Frame) continues(p []byte, n, hl int) Reason {
	switch {
	case n-len(p) > int(f.rest):
		return ReasonTruncated
	case len(p) < hl:
		return ReasonSplitHeaders
	}
	f.rest = uint32(n - len(p))
	return OK
}

// Rest returns the buffers after the first one, up to the end of the frame; nil
// if the frame ends in the first.
func (f *Frame) Rest() [][]byte {
	if f.chain == nil {
		return nil
	}
	return (*f.chain)[1:]
}

// PayloadIn returns the whole payload: Payload itself if the frame ends in its
// first buffer, else a copy of it in scratch; nil if scratch is too short.
func (f *Frame) PayloadIn(scratch []byte) []byte {
	p := f.Payload()
	if f.chain == nil {
		return p
	}
	n := f.PayloadLen()
	if n > len(scratch) {
		return nil
	}
	at := copy(scratch[:n], p)
	for _, b := range f.Rest() {
		at += copy(scratch[at:n], b)
	}
	return scratch[:n]
}

// ICRC returns the last ICRCLen bytes of c as an ICRC. c must have as many.
func (c Chain) ICRC() uint32 {
	k := len(c) - 1
	b := c[k]
	if n := len(b); n >= ICRCLen {
		return binary.LittleEndian.Uint32(b[n-ICRCLen:])
	}
	var v uint32
	for range ICRCLen {
		for len(b) == 0 {
			k--
			b = c[k]
		}
		v = v<<8 | uint32(b[len(b)-1])
		b = b[:len(b)-1]
	}
	return v
}

// SetICRC writes v to the last ICRCLen bytes of c, least significant byte first. c may be
// a copy of a frame that is cut into buffers at other positions. c must have as many
// bytes.
func (c Chain) SetICRC(v uint32) {
	k := len(c) - 1
	b := c[k]
	if n := len(b); n >= ICRCLen {
		binary.LittleEndian.PutUint32(b[n-ICRCLen:], v)
		return
	}
	for range ICRCLen {
		for len(b) == 0 {
			k--
			b = c[k]
		}
		v = bits.RotateLeft32(v, 8)
		b[len(b)-1] = byte(v)
		b = b[:len(b)-1]
	}
}

// chainICRC is ICRC for a frame that is not RoCE in one buffer.
func (f *Frame) chainICRC() uint32 {
	if f.Kind != KindRoCE {
		return 0
	}
	return f.chain.ICRC()
}

// setChainICRC is SetICRC for a frame that is not RoCE in one buffer.
func (f *Frame) setChainICRC(v uint32) {
	if f.Kind == KindRoCE {
		f.chain.SetICRC(v)
	}
}

// computeChainICRC is ComputeICRC for a frame that is not RoCE in one buffer.
func (f *Frame) computeChainICRC() uint32 {
	if f.Kind != KindRoCE {
		return 0
	}
	v := ^headerCRC(icrcInit, f.buf[f.l3:], int(f.l4-f.l3), f.v6)
	left := f.Len() - ICRCLen
	at := int(f.l4) + UDPLen + BTHLen
	for _, b := range *f.chain {
		b = b[:min(len(b), left)]
		left -= len(b)
		v = crc32.Update(v, crc32.IEEETable, b[at:])
		at = 0
	}
	return v
}

// sumChain adds the 16-bit big endian words of the bytes in first and rest to s, as a
// one's complement sum. The sum of a buffer that begins in the middle of a word counts
// with its bytes swapped (RFC 1071 §2 B).
func sumChain(first []byte, rest [][]byte, s uint64) uint64 {
	s = onesSum(first, s)
	odd := len(first) & 1
	for _, b := range rest {
		w := fold(onesSum(b, 0))
		if odd != 0 {
			w = bits.ReverseBytes16(w)
		}
		s = uint64(fold(s)) + uint64(w)
		odd ^= len(b) & 1
	}
	return s
}
