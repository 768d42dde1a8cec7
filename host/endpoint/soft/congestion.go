// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// DefaultLineRate is the line rate of congestion control, in bits/s, if neither
// Config.Congestion nor Config.Rate gives one. It is roughly the rate of one core with
// packets of 1024 bytes, not a property of the interface.
const DefaultLineRate = 1_000_000_000

// completeCongestion sets the defaults that package dcqcn does not have, and checks the
// other fields. c.Congestion may be shared: it is copied.
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

// paced reports whether queue pairs are bounded by a rate.
func (c *Config) paced() bool { return c.Congestion != nil || c.Rate > 0 }

// ecnMask covers the ECN bits of a traffic class.
const ecnMask = 3

// cnpTrafficClass is DSCP 48 (CS6), not ECN-capable: the value that RNICs give CNPs
// (np_cnp_dscp in hw/mlx5/cong.c), so that they bypass the congested queue.
const cnpTrafficClass = 48 << 2

// trafficClass returns the traffic class of a packet of op, on a queue pair of traffic
// class tc. Without congestion control that is tc, ECN bits included.
func (c *Config) trafficClass(tc uint8, op rocev2.Opcode) uint8 {
	switch {
	case c.Congestion == nil:
		return tc
	case op == rocev2.CNP:
		return cnpTrafficClass
	case op.Is(rocev2.OpRequest):
		return tc&^ecnMask | uint8(rocev2.ECT0)
	}
	return tc &^ ecnMask // a mark on a response would have no effect
}

// countCongestion counts the congestion signals of a received packet.
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

// linkOverhead is the part of a frame on an Ethernet link that packet sockets do not see:
// preamble 8, FCS 4, gap 12 bytes. It counts for the rate, so that a queue pair at 100
// Mbit/s just fills a 100 Mbit/s link, as in package linkrate.
const linkOverhead = 24

// overhead returns the bytes of a frame around BTH to ICRC.
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
