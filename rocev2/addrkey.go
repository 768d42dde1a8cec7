// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"net/netip"
)

// AddrKey is an IP address as two words, which compares and hashes faster than
// netip.Addr. IPv4 is in its IPv6-mapped form, so that 10.0.0.1 and ::ffff:10.0.0.1 are
// the same host.
type AddrKey struct{ Hi, Lo uint64 }

// ipv4Mapped is the upper half of the lower word of an IPv4-mapped address.
const ipv4Mapped = 0xFFFF << 32

// KeyOf returns the key of a, which must be valid.
func KeyOf(a netip.Addr) AddrKey {
	if a.Is4() {
		// Four times as fast as As16: 16 bytes that were just written in halves cannot
		// be read as a whole before they have left the CPU's store buffer.
		b := a.As4()
		return AddrKey{0, ipv4Mapped | uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return AddrKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// Addr returns the address.
func (k AddrKey) Addr() netip.Addr {
	return netip.AddrFrom16([16]byte(k.Append(make([]byte, 0, 16)))).Unmap()
}

// Append appends the 16 bytes of the address to b.
func (k AddrKey) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, k.Hi), k.Lo)
}

// Hash returns 64 bits that all depend on all bits of the address.
func (k AddrKey) Hash() uint64 {
	// The finalizer of splitmix64 over both words.
	h := k.Lo ^ k.Hi*0x9E3779B97F4A7C15
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return h ^ h>>31
}

// DstKey returns the key of the destination.
func (h IPv4) DstKey() AddrKey {
	return AddrKey{0, ipv4Mapped | uint64(binary.BigEndian.Uint32(h[16:20]))}
}

// DstKey returns the key of the destination.
func (h IPv6) DstKey() AddrKey {
	return AddrKey{binary.BigEndian.Uint64(h[24:32]), binary.BigEndian.Uint64(h[32:40])}
}
