// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"time"
)

// AETH is an ACK extended transport header, AETHLen bytes (IBTA §9.3.5).
//
//	0 syndrome  1 MSN(24)
type AETH []byte

// Syndrome returns the syndrome.
func (a AETH) Syndrome() Syndrome { return Syndrome(a[0]) }

// MSN returns the message sequence number.
func (a AETH) MSN() MSN { return MSN(binary.BigEndian.Uint32(a[0:4]) & PSNMask) }

// Set sets both fields.
func (a AETH) Set(s Syndrome, m MSN) {
	binary.BigEndian.PutUint32(a[0:4], uint32(s)<<24|uint32(m)&PSNMask)
}

// RNRCode is the timer field of an RNR NAK, 0..31 (IBTA table 46). The
// durations are not monotone in the code: 0 is the longest. Compare durations,
// never codes.
type RNRCode uint8

// rnrTimer is in units of 10 µs (rdma_rxe rxe_comp.c:rnrnak_usec).
var rnrTimer = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
	12288, 16384, 24576, 32768, 49152,
}

// Duration returns the time that the requester must wait; only the lower five bits of c
// count.
func (c RNRCode) Duration() time.Duration {
	return time.Duration(rnrTimer[c&31]) * 10 * time.Microsecond
}

// RNRCodeFor returns the code of the shortest timer that is at least d, or 0
// (655.36 ms) if there is none.
func RNRCodeFor(d time.Duration) RNRCode {
	for c := RNRCode(1); c < 32; c++ {
		if c.Duration() >= d {
			return c
		}
	}
	return 0
}

// AckTimeout returns the local ACK timeout for exponent t of a queue pair, 4.096 µs * 2^t
// for 1 to 31 (IBTA 9.7.6.1.3). For 0, and for any t above 31, it returns 0: no timeout.
func AckTimeout(t uint8) time.Duration {
	if t == 0 || t > 31 {
		return 0
	}
	return 4096 * time.Nanosecond << t
}

// FlooredAckTimeout is the interval of requesters with a floor for exponent t, 2 * 4.096 µs * 2^max(t, 16):
// NVIDIA's ConnectX as they are delivered (RC.md §3.7). For 0 there is no timeout.
func FlooredAckTimeout(t uint8) time.Duration { return 2 * AckTimeout(max(t, min(t, 1)*16)) }

// RNR returns the syndrome of an RNR NAK with timer c.
func (c RNRCode) RNR() Syndrome { return SyndromeRNR | Syndrome(c&31) }

// RNRCode returns the timer field of an RNR NAK's syndrome.
func (s Syndrome) RNRCode() RNRCode { return RNRCode(s & 31) }

// credits is the credit table of IBTA table 45 (rdmavt rc.c:credit_table).
var credits = [31]uint16{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// Credits returns the messages that an ACK with syndrome s grants, and false if
// s is no ACK or does not limit them (0x1F).
func (s Syndrome) Credits() (n int, limited bool) {
	if s >= Syndrome(len(credits)) {
		return 0, false
	}
	return int(credits[s]), true
}

// SyndromeCredits returns the ACK syndrome that grants the most credits in the table that
// do not exceed n. A negative n grants none.
func SyndromeCredits(n int) Syndrome {
	s := Syndrome(0)
	for int(s)+1 < len(credits) && int(credits[s+1]) <= n {
		s++
	}
	return s
}
