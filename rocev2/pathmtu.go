// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

// Path MTUs of InfiniBand (IBTA 9.4.2), in bytes of payload per packet. Their codes
// are those of enum ibv_mtu.
const (
	DefaultPathMTU = 1024
	// PathMTUText lists the path MTUs, for messages.
	PathMTUText = "256, 512, 1024, 2048 or 4096"
)

// PathMTUs returns the path MTUs, the least first.
func PathMTUs() []int { return []int{256, 512, 1024, 2048, 4096} }

// ValidPathMTU reports whether bytes is a path MTU.
func ValidPathMTU(bytes int) bool { return PathMTUCode(bytes) != 0 }

// PathMTUCode returns the code of a path MTU, 1 to 5; 0 if bytes is none.
func PathMTUCode(bytes int) uint32 {
	for code := uint32(1); code <= 5; code++ {
		if PathMTUOfCode(code) == bytes {
			return code
		}
	}
	return 0
}

// PathMTUOfCode is the inverse of PathMTUCode; 0 if code is none.
func PathMTUOfCode(code uint32) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

// MaxHeaders returns the bytes that RoCEv2 adds to the path MTU within an IP packet, at
// most: IP, UDP, BTH, RETH, ImmDt and ICRC.
func MaxHeaders(v4 bool) int {
	n := UDPLen + BTHLen + RETHLen + ImmDtLen + ICRCLen
	if v4 {
		return n + IPv4Len
	}
	return n + IPv6Len
}
