// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

// PSN is a packet sequence number: 24 bits, modulo 2^24 (IBTA §9.7.1). The
// upper 8 bits are always zero. PSNs are compared only through the methods
// below: a plain < is wrong at the wrap (defect 4 of the paper's Algorithm 2).
type PSN uint32

// PSNMask selects the 24 bits of a PSN, a QPN or an MSN.
const PSNMask = 1<<24 - 1

// Add returns p+n modulo 2^24; n may be negative.
func (p PSN) Add(n int32) PSN { return PSN((uint32(p) + uint32(n)) & PSNMask) }

// Next returns p+1 modulo 2^24.
func (p PSN) Next() PSN { return (p + 1) & PSNMask }

// Prev returns p-1 modulo 2^24.
func (p PSN) Prev() PSN { return (p - 1) & PSNMask }

// Sub returns the signed circular distance p-q, in [-2^23, 2^23)
// (rdma_rxe rxe_verbs.h:psn_compare is 256 times this).
func (p PSN) Sub(q PSN) int32 { return int32(uint32(p-q)<<8) >> 8 }

// Less reports p < q, circularly.
func (p PSN) Less(q PSN) bool { return p.Sub(q) < 0 }

// LessEq reports p <= q, circularly.
func (p PSN) LessEq(q PSN) bool { return p.Sub(q) <= 0 }

// MaxPSN returns the circularly greater of p and q.
func MaxPSN(p, q PSN) PSN {
	if p.Less(q) {
		return q
	}
	return p
}

// MinPSN returns the circularly lesser of p and q.
func MinPSN(p, q PSN) PSN {
	if p.Less(q) {
		return p
	}
	return q
}

// QPN is a queue pair number: 24 bits. 0 and 1 are the management QPs and
// 0xFFFFFF is the multicast QP; an RC QP has none of these.
type QPN uint32

// Valid reports whether an RC QP, or the virtual peer of one, may have number q: real RC
// QPNs start above the management QPs, and 0x1..0xF are excluded so that a leaked group
// packet cannot reach a management QP.
func (q QPN) Valid() bool { return q >= 0x10 && q < 0xFFFFFF }

// MSN is a message sequence number: 24 bits, modulo 2^24 (AETH).
type MSN uint32

// Add returns m+n modulo 2^24.
func (m MSN) Add(n int32) MSN { return MSN((uint32(m) + uint32(n)) & PSNMask) }
