// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// common are the bits that all group prefixes of a family have in common, of IPv6 the
// first 8 bytes: steer.c compares them before it looks an address up. Words are as in
// the frame.
type common struct {
	bits4, mask4 uint32
	bits6, mask6 uint64
}

// commonBits finds them. Without a prefix of a family all of its addresses are
// looked up, in an empty map.
func commonBits(prefixes []netip.Prefix) (c common) {
	var first4, first6 uint64
	mask4, mask6 := ^uint64(0), ^uint64(0)
	seen4, seen6 := false, false
	for _, p := range prefixes {
		b := p.Addr().AsSlice()
		if p.Addr().Is4() {
			add(&first4, &mask4, &seen4, uint64(binary.BigEndian.Uint32(b))<<32, p.Bits())
		} else {
			add(&first6, &mask6, &seen6, binary.BigEndian.Uint64(b), min(p.Bits(), 64))
		}
	}
	if seen4 {
		c.bits4, c.mask4 = bits.ReverseBytes32(uint32(first4>>32)), bits.ReverseBytes32(uint32(mask4>>32))
	}
	if seen6 {
		c.bits6, c.mask6 = bits.ReverseBytes64(first6), bits.ReverseBytes64(mask6)
	}
	return c
}

// narrow takes off the masks the bits that prefixes do not have.
func (c *common) narrow(prefixes []netip.Prefix) {
	first4, mask4 := uint64(bits.ReverseBytes32(c.bits4))<<32, uint64(bits.ReverseBytes32(c.mask4))<<32
	first6, mask6 := bits.ReverseBytes64(c.bits6), bits.ReverseBytes64(c.mask6)
	for _, p := range prefixes {
		b, seen := p.Addr().AsSlice(), true
		if p.Addr().Is4() {
			add(&first4, &mask4, &seen, uint64(binary.BigEndian.Uint32(b))<<32, p.Bits())
		} else {
			add(&first6, &mask6, &seen, binary.BigEndian.Uint64(b), min(p.Bits(), 64))
		}
	}
	c.mask4, c.mask6 = bits.ReverseBytes32(uint32(mask4>>32)), bits.ReverseBytes64(mask6)
}

// commonMasks is struct common_masks.
type commonMasks struct {
	Mask6         uint64
	Mask4, Unused uint32
}

func (c *common) masks() commonMasks { return commonMasks{Mask6: c.mask6, Mask4: c.mask4} }

// add narrows the common bits by a prefix, the first n bits of x.
func add(first, mask *uint64, seen *bool, x uint64, n int) {
	if !*seen {
		*first, *seen = x, true
	}
	*mask &= ^uint64(0) << (64 - n)
	if d := bits.LeadingZeros64(*first ^ x); d < 64 {
		*mask &= ^(^uint64(0) >> d)
	}
}
