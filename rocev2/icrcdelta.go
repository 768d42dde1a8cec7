// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Incremental ICRC. The CRC is affine: for covered strings A and B of equal length,
// icrc(A) ^ icrc(B) = L(A ^ B), where L is the CRC with initial value and final XOR 0. So
// a rewrite of some header words changes the ICRC by the contributions of their
// differences, whatever the payload is. A wrong ICRC stays wrong: the receiver still
// detects the corruption.
//
// All header fields sit at multiples of 4 bytes from the ICRC. A difference is
// therefore a 32-bit word d, the XOR of the old and the new four bytes loaded
// little endian (Diff32 makes it of field values), with the masked fields left
// out. The contribution of d is Shift(d, n), with n counted in bytes from the
// beginning of the word to the ICRC. Contributions are combined by XOR.

// Diff32 returns the difference word of a 32-bit header field that changes
// from old to new, both in host order.
func Diff32(old, new uint32) uint32 { return bits.ReverseBytes32(old ^ new) }

// DiffBTH2 returns the difference word of the third word of BTH: AckReq and
// PSN, the rest unchanged.
func DiffBTH2(oldPSN, newPSN PSN, ackReqFlipped bool) uint32 {
	d := uint32(oldPSN^newPSN) & PSNMask
	if ackReqFlipped {
		d |= 1 << 31
	}
	return bits.ReverseBytes32(d)
}

// xPow8 holds x^(8*2^k) modulo the polynomial, by k. Only init writes it.
var xPow8 = func() (t [32]uint32) {
	t[0] = 0x00800000 // x^8
	for k := 1; k < len(t); k++ {
		t[k] = mulMod(t[k-1], t[k-1])
	}
	return t
}()

// mulMod multiplies two polynomials modulo that of the CRC; bit 31 is x^0.
func mulMod(a, b uint32) uint32 {
	var r uint32
	for i := range 32 {
		r ^= b & -(a >> (31 - i) & 1)
		b = mulX(b)
	}
	return r
}

// Shift returns CRC register c after n zero bytes: c * x^(8n). It is right for
// every n >= 0, and slow (some 100 ns) beside an Operator.
func Shift(c uint32, n int) uint32 {
	for k := 0; n > 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			c = mulMod(xPow8[k], c)
		}
	}
	return c
}

// Operator is Shift for one fixed n, as four tables of 256: 4 KiB, applied in
// four loads. It is immutable once made.
type Operator struct {
	table [4][256]uint32
}

// NewOperator makes the operator that shifts by n bytes, n >= 0.
func NewOperator(n int) *Operator {
	o := new(Operator)
	// Bit 31-i of a register is x^i, and its image x^i * x^(8n).
	img := Shift(1<<31, n)
	for i := range 32 {
		bit := 31 - i
		o.table[bit>>3][1<<(bit&7)] = img
		img = mulX(img)
	}
	for k := range o.table {
		t := &o.table[k]
		for v := 3; v < 256; v++ {
			if low := v & -v; low != v {
				t[v] = t[v^low] ^ t[low]
			}
		}
	}
	return o
}

// Apply returns Shift(c, n) for the operator's n.
func (o *Operator) Apply(c uint32) uint32 {
	return o.table[0][c&0xFF] ^ o.table[1][c>>8&0xFF] ^ o.table[2][c>>16&0xFF] ^ o.table[3][c>>24]
}

// Table returns the operator's tables, by byte of the register from the lowest one on: the
// result is the XOR of their entries.
func (o *Operator) Table() *[4][256]uint32 { return &o.table }

// Operators is a family of operators by length in 4-byte words. Build is for
// the owner; other methods may be called by many goroutines while none builds.
// The zero value is an empty family, right but slow.
type Operators struct {
	byLength []*Operator
}

// MaxShift is the greatest distance in bytes from a header word to the ICRC of
// a packet with 4096 bytes of payload: an IPv6 header, UDP, BTH and AtomicETH.
const MaxShift = IPv6Len + UDPLen + BTHLen + AtomicETHLen + 4096

// NewOperators builds the operators of every length up to max bytes: about
// 1 KiB of tables per byte (4.3 MB for MaxShift), a few milliseconds.
func NewOperators(max int) *Operators {
	z := &Operators{}
	for n := 0; n <= max; n += 4 {
		z.Build(n)
	}
	return z
}

// Build makes the operator of n bytes unless it exists. An n that is negative or no
// multiple of 4 has none.
func (z *Operators) Build(n int) {
	if n < 0 || n&3 != 0 {
		return
	}
	for len(z.byLength) <= n/4 {
		z.byLength = append(z.byLength, nil)
	}
	if z.byLength[n/4] == nil {
		z.byLength[n/4] = NewOperator(n)
	}
}

// Has reports whether the operator of n bytes is built.
func (z *Operators) Has(n int) bool {
	return n >= 0 && n&3 == 0 && n>>2 < len(z.byLength) && z.byLength[n>>2] != nil
}

// Shift returns Shift(c, n), by table if there is one for n.
func (z *Operators) Shift(c uint32, n int) uint32 {
	if i := uint(n) >> 2; n&3 == 0 && i < uint(len(z.byLength)) {
		if o := z.byLength[i]; o != nil {
			return o.Apply(c)
		}
	}
	return Shift(c, n)
}

// Fields computes the contributions of BTH and extension header words of
// packets of one length. It is a value; make one per packet.
type Fields struct {
	zero  *Operators
	count int // bytes from the PSN word (BTH byte 8) to the ICRC
}

// Fields returns the contributions for a packet with extLen bytes of extension
// headers (Opcode.ExtLen) and tail bytes of payload and pad (Frame.Tail).
func (z *Operators) Fields(extLen, tail int) Fields { return Fields{z, 4 + extLen + tail} }

// PSN returns the contribution of d, the difference of BTH bytes 8..11 (see
// DiffBTH2). A leg's constant may be folded into d, at no cost: see LegDelta.
func (o Fields) PSN(d uint32) uint32 { return o.zero.Shift(d, o.count) }

// Ext returns the contribution of d, the difference of the extension header
// word at off bytes after BTH: AETH, ImmDt and IETH are at 0.
func (o Fields) Ext(off int, d uint32) uint32 { return o.zero.Shift(d, o.count-4-off) }

// RETH returns the contribution of a change of VA and R_Key in a RETH that
// directly follows BTH, as it does in every opcode but FLUSH.
func (o Fields) RETH(oldVA, newVA uint64, oldKey, newKey uint32) uint32 {
	va := bits.ReverseBytes64(oldVA ^ newVA)
	c := o.zero.Shift(bits.ReverseBytes32(oldKey^newKey), o.count-12) ^ o.zero.Shift(uint32(va>>32), o.count-8)
	if lo := uint32(va); lo != 0 { // the upper half of VA rarely changes
		c ^= o.zero.Shift(lo, o.count-4)
	}
	return c
}

// LegDelta returns the CRC register, started at 0, after the differences of
// addresses and QPN up to and including BTH byte 7. It is a constant per leg
// and source, whatever the packet's length: a packet's whole change of ICRC is
//
//	fields.PSN(leg ^ DiffBTH2(...)) ^ fields.RETH(...)
//
// optLen is the length in bytes of the IPv4 options that the packets carry,
// usually 0; a multiple of 4. All four addresses are of one family, else the
// result is meaningless.
func LegDelta(oldSrc, newSrc, oldDst, newDst netip.Addr, oldQP, newQP QPN, optLen int) uint32 {
	var c uint32
	if oldSrc.Is4() {
		c = feed4(c, oldSrc, newSrc)
		c = feed4(c, oldDst, newDst)
		for ; optLen >= 4; optLen -= 4 {
			c = step(c)
		}
	} else {
		c = feed16(c, oldSrc, newSrc)
		c = feed16(c, oldDst, newDst)
	}
	c = step(c) // UDP ports
	c = step(c) // UDP length; the checksum is masked
	c = step(c) // BTH opcode, flags, P_Key
	return step(c ^ Diff32(uint32(oldQP)&PSNMask, uint32(newQP)&PSNMask))
}

func feed4(c uint32, old, new netip.Addr) uint32 {
	a, b := old.As4(), new.As4()
	return step(c ^ binary.LittleEndian.Uint32(a[:]) ^ binary.LittleEndian.Uint32(b[:]))
}

func feed16(c uint32, old, new netip.Addr) uint32 {
	a, b := old.As16(), new.As16()
	for o := 0; o < 16; o += 4 {
		c = step(c ^ binary.LittleEndian.Uint32(a[o:]) ^ binary.LittleEndian.Uint32(b[o:]))
	}
	return c
}

// HeaderDelta returns the change of ICRC from the headers of old to those of new, for any
// differing fields, masked ones aside. The two must have the same length of IP packet, of
// IP header and of extension headers, and the same payload; ok is false if the lengths do
// not match.
func (z *Operators) HeaderDelta(old, new *Frame) (delta uint32, ok bool) {
	ipLen := old.l4 - old.l3
	if old.Kind != KindRoCE || new.Kind != KindRoCE || old.v6 != new.v6 || ipLen != new.l4-new.l3 ||
		old.payloadOff-old.l4 != new.payloadOff-new.l4 || old.Tail() != new.Tail() {
		return 0, false
	}
	a, b := old.buf[old.l3:old.payloadOff], new.buf[new.l3:new.payloadOff]
	hdr := int(ipLen) + UDPLen + BTHLen
	// Both registers start at 0, so that their XOR is the register of the difference.
	c := headerCRC(0, a, int(ipLen), old.v6) ^ headerCRC(0, b, int(ipLen), new.v6)
	for o := hdr; o < len(a); o += 4 {
		c = step(c ^ binary.LittleEndian.Uint32(a[o:]) ^ binary.LittleEndian.Uint32(b[o:]))
	}
	return z.Shift(c, old.Tail()), true
}
