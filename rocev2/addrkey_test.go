// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// A key stands for one host: the address comes back, IPv4 and its mapped form are the
// same, and a header's destination has the key of the address in it.
func TestAddrKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address"))
		six, four := netip.AddrFrom16(b), netip.AddrFrom4([4]byte(b[:4]))
		if k := KeyOf(six); k.Addr() != six.Unmap() || [16]byte(k.Append(nil)) != b {
			t.Fatalf("%v: %v", six, k.Addr())
		}
		k := KeyOf(four)
		if mapped := netip.AddrFrom16(four.As16()); k.Addr() != four || KeyOf(mapped) != k || KeyOf(mapped).Hash() != k.Hash() {
			t.Fatalf("%v: %v, mapped %v", four, k.Addr(), KeyOf(mapped).Addr())
		}
		v4, v6 := make(IPv4, IPv4Len), make(IPv6, IPv6Len)
		copy(v4[16:], b[:4])
		v6.SetDst(six)
		if v4.DstKey() != k || v4.Dst() != four || v6.DstKey() != KeyOf(six) {
			t.Fatalf("a header for %v and one for %v have other keys", four, six)
		}
	})
}
