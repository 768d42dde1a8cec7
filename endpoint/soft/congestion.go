// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"

	"github.com/gleam-rdma/gleam/dcqcn"
	"github.com/gleam-rdma/gleam/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultLineRate is the line rate in bits/s of congestion control for which
// neither Config.Congestion nor Config.Rate names one. It is about what one core
// can move with packets of 1024 bytes, not a property of the interface.
const DefaultLineRate = 1_000_000_000

// completeCongestion fills in what package dcqcn has no default for, and checks
// the rest. c.Congestion may be shared: it is copied.
func (c *Config) completeCongestion() error {
	if c.Rate < 0 {
		return fmt.Errorf("rate %d bits/s: want 0, for none, or more", c.Rate)
	}
	if c.Rate > 0 {
		if _, err := (dcqcn.Config{LineRate: c.Rate}).Complete(); err != nil {
			return fmt.Errorf("rate %d bits/s: %w", c.Rate, err)
		}
	}
	if c.Congestion == nil {
		return nil
	}
	p := *c.Congestion
	if p.LineRate == 0 {
		p.LineRate = DefaultLineRate
		if c.Rate > 0 {
			p.LineRate = c.Rate
		}
	}
	if _, err := p.Complete(); err != nil {
		return fmt.Errorf("congestion control: %w", err)
	}
	c.Congestion = &p
	return nil
}

// paced says whether queue pairs keep to a rate.
func (c *Config) paced() bool { return c.Congestion != nil || c.Rate > 0 }

// ecnMask covers the ECN bits of a traffic class.
const ecnMask = 3

// cnpTrafficClass is DSCP 48 (CS6), not ECN-capable: what RNICs give CNPs
// (np_cnp_dscp in hw/mlx5/cong.c), so that they pass the queue they are about.
const cnpTrafficClass = 48 << 2

// trafficClass returns the traffic class of a packet of op, on a queue pair of
// traffic class tc. Without congestion control that is tc, ECN bits and all.
func (c *Config) trafficClass(tc uint8, op rocev2.Opcode) uint8 {
	switch {
	case c.Congestion == nil:
		return tc
	case op == rocev2.CNP:
		return cnpTrafficClass
	case op.Is(rocev2.OpRequest):
		return tc&^ecnMask | uint8(rocev2.ECT0)
	}
	return tc &^ ecnMask // nothing would come of a mark on a response
}

// countCongestion counts what a received packet says of the path.
func (l *loop) countCongestion(p *rc.Packet) {
	if p.CE {
		l.stats.CEReceived++
	}
	switch p.Op {
	case rocev2.CNP:
		l.stats.CNPsReceived++
	case rocev2.Acknowledge:
		if p.BECN {
			l.stats.BECNReceived++
		}
	}
}

// linkOverhead is what a frame takes on an Ethernet link beside what packet
// sockets see: preamble 8, FCS 4, gap 12 bytes. It counts for the rate, so that a
// queue pair at 100 Mbit/s just fills a 100 Mbit/s link, as package rate has it.
const linkOverhead = 24

// overhead is the bytes of a frame around BTH to ICRC.
func (q *qp) overhead() int {
	n := linkOverhead + rocev2.EthernetLen + rocev2.UDPLen + rocev2.IPv4Len
	if q.cfg.LocalIP.Is6() {
		n += rocev2.IPv6Len - rocev2.IPv4Len
	}
	if q.dev.cfg.VLAN != nil {
		n += rocev2.VLANLen
	}
	return n
}
