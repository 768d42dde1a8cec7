// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Infinite as Config.RNRRetry, and as RetryCnt of an RXE QP, retries forever.
const Infinite = 7

// MaxMessage is the longest message in bytes (C9-94).
const MaxMessage = 1 << 31

// Config has the attributes that verbs set on the way from RESET to RTS. The zero value
// of an optional field takes the default named beside it.
type Config struct {
	Personality Personality
	PMTU        int        // path MTU in bytes: 256, 512, 1024, 2048 or 4096
	LocalQPN    rocev2.QPN // packets for another QPN are dropped
	DestQPN     rocev2.QPN // the peer's, or the group's virtual QPN
	SQPSN       rocev2.PSN // PSN of the first request sent
	RQPSN       rocev2.PSN // PSN of the first request expected

	// Timeout is the retransmission timeout; rocev2.AckTimeout converts a verbs timeout
	// code. 0 means none: a lost tail is then never resent.
	Timeout     time.Duration
	RetryCnt    uint8 // 0..7 transport retries; RXE: 7 is infinite
	RNRRetry    uint8 // 0..7 RNR retries; 7 is infinite
	MinRNRTimer uint8 // 0..31: RNR timer code the responder sends; see rocev2.RNRCode

	MaxUnacked int // send window in PSNs; default: the personality's, RXE 128 (RXE_MAX_UNACKED_PSNS)
	// AckReqEvery bounds the run of packets of a message without AckReq. Default: the
	// personality's, but at most MaxUnacked; RXE 66 (RXE_MAX_PKT_PER_ACK 64, tested after
	// counting), Strict 16 (QIB_PSN_CREDIT). At most MaxUnacked, or the send window could close without a request for an ACK. The last
	// packet of a message always has AckReq.
	AckReqEvery int
	SendDepth   int // WRs in the send queue; default 128
	RecvDepth   int // WRs in the receive queue; default 128

	// Credits lets the responder put the credit code for its posted receives
	// into ACKs (IBTA 9.7.7.2) instead of 0x1F, unlimited. rxe never does; a ConnectX
	// always does.
	Credits bool

	// Congestion turns congestion control on: DCQCN's reaction point for the requests
	// that are sent, which CNPs and ACKs with BECN slow down, and its notification point
	// for requests that arrive with CE, which are answered with CNPs. nil: off; CNPs are
	// counted, nothing else. With Congestion, the driver should send requests
	// ECN-capable.
	Congestion *dcqcn.Config
	// MaxRate bounds the rate of requests, retransmissions included, in bits/s of
	// whole frames; with Congestion it bounds LineRate. 0: none.
	MaxRate int64
	// FrameOverhead is the number of bytes that the driver adds to each packet around BTH
	// to ICRC: they count for the rate.
	FrameOverhead int

	// Memory resolves the R_Keys of RDMA WRITE. nil resolves none, so that only WRITEs of
	// length 0 succeed. It may be shared by QPs of one goroutine.
	Memory *Memory
}

// complete fills in defaults, then checks every field.
func (c *Config) complete() error {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	t := c.Personality.traits()
	def(&c.MaxUnacked, t.window)
	def(&c.AckReqEvery, min(t.askEvery, c.MaxUnacked))
	def(&c.SendDepth, 128)
	def(&c.RecvDepth, 128)

	var errs []error
	bad := func(field string, got any, want string) {
		errs = append(errs, fmt.Errorf("rc: %s is %v: want %s", field, got, want))
	}
	if c.Personality >= numPersonalities {
		bad("Personality", c.Personality, fmt.Sprintf("one of %v", Personalities()))
	}
	if !rocev2.ValidPathMTU(c.PMTU) {
		bad("PMTU", c.PMTU, rocev2.PathMTUText+" bytes")
	}
	if !c.LocalQPN.Valid() {
		bad("LocalQPN", fmt.Sprintf("%#x", uint32(c.LocalQPN)), "0x10..0xFFFFFE")
	}
	if !c.DestQPN.Valid() {
		bad("DestQPN", fmt.Sprintf("%#x", uint32(c.DestQPN)), "0x10..0xFFFFFE")
	}
	if c.SQPSN > rocev2.PSNMask {
		bad("SQPSN", fmt.Sprintf("%#x", uint32(c.SQPSN)), "24 bits")
	}
	if c.RQPSN > rocev2.PSNMask {
		bad("RQPSN", fmt.Sprintf("%#x", uint32(c.RQPSN)), "24 bits")
	}
	if c.Timeout < 0 {
		bad("Timeout", c.Timeout, "0 or more")
	}
	if c.RetryCnt > 7 {
		bad("RetryCnt", c.RetryCnt, "0..7")
	}
	if c.RNRRetry > 7 {
		bad("RNRRetry", c.RNRRetry, "0..7")
	}
	if c.MinRNRTimer > 31 {
		bad("MinRNRTimer", c.MinRNRTimer, "a code 0..31")
	}
	if c.MaxUnacked < 1 || c.MaxUnacked > 1<<22 {
		bad("MaxUnacked", c.MaxUnacked, "1..2^22 packets")
	}
	if c.AckReqEvery < 1 || c.AckReqEvery > c.MaxUnacked {
		bad("AckReqEvery", c.AckReqEvery, fmt.Sprintf("1..MaxUnacked (%d)", c.MaxUnacked))
	}
	if c.SendDepth < 1 || c.SendDepth > 1<<20 {
		bad("SendDepth", c.SendDepth, "1..2^20")
	}
	if c.RecvDepth < 1 || c.RecvDepth > 1<<20 {
		bad("RecvDepth", c.RecvDepth, "1..2^20")
	}
	if c.FrameOverhead < 0 || c.FrameOverhead > 1<<10 {
		bad("FrameOverhead", c.FrameOverhead, "0..1024 bytes")
	}
	if err := c.completePacing(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
