// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
)

// Config describes a device. The zero value of everything but Interface takes
// the default in brackets.
type Config struct {
	Interface   string         // an interface such as eth0, in the calling thread's namespace
	Personality rc.Personality // the implementation that queue pairs imitate [rc.RXE]

	// VLAN makes the device tag all frames that it sends, in band, so that no
	// VLAN interface is needed. Tagged frames are always accepted. [none]
	VLAN *VLAN

	// Loss is the probability, 0 to below 1, with which each frame is dropped
	// at the device's edge, when sent and when received. Seed makes the choice
	// repeatable as far as the order of frames is. [0]
	Loss float64
	Seed uint64

	// Congestion turns DCQCN on: data is sent ECN-capable, CE in received data is
	// answered with CNPs, and CNPs slow the queue pair down. If its LineRate is 0, Rate
	// takes its place, or DefaultLineRate if that is 0 too. [nil: off]
	Congestion *dcqcn.Config
	// Rate bounds the packets that each queue pair sends, retransmissions included, in
	// bits/s of an Ethernet link, preamble, FCS and gap included; responses are not
	// bounded. [0: none]
	Rate int64

	// MaxUnacked is the window of every queue pair in packets [128, as rxe].
	MaxUnacked int
	// ReceiveBuffer is the socket's receive buffer in bytes [16 MiB].
	ReceiveBuffer int
	// ResolveTimeout bounds the wait for ARP or neighbour discovery [1 s, as
	// the kernel's modify to RTR].
	ResolveTimeout time.Duration

	// Trace gets every frame sent and received as pcapng, for debugging, at the cost of a
	// write for each frame. It has the frames dropped by Loss on receipt, but not those
	// dropped on sending. [nil]
	Trace io.Writer
}

// VLAN is an 802.1Q tag.
type VLAN struct {
	ID  uint16 // VID, 1..4094; 0 for a priority tag
	PCP uint8  // priority, 0..7
}

func (v VLAN) tci() uint16 { return uint16(v.PCP)<<13 | v.ID }

// complete fills in defaults and checks c.
func (c *Config) complete() error {
	if c.MaxUnacked == 0 {
		c.MaxUnacked = 128
	}
	if c.ReceiveBuffer == 0 {
		c.ReceiveBuffer = 16 << 20
	}
	if c.ResolveTimeout == 0 {
		c.ResolveTimeout = time.Second
	}
	switch {
	case c.Interface == "":
		return fmt.Errorf("no interface given: name the one that leads to the switch")
	case !slices.Contains(rc.Personalities(), c.Personality):
		return fmt.Errorf("personality %d: want one of %v", c.Personality, rc.Personalities())
	case c.VLAN != nil && (c.VLAN.ID > 4094 || c.VLAN.PCP > 7):
		return fmt.Errorf("VLAN %d priority %d: want 0 to 4094 and 0 to 7", c.VLAN.ID, c.VLAN.PCP)
	case !(c.Loss >= 0 && c.Loss < 1): // false for NaN
		return fmt.Errorf("loss %v: want a probability of at least 0 and below 1", c.Loss)
	case c.MaxUnacked < 1 || c.MaxUnacked > 1<<16:
		return fmt.Errorf("window of %d packets: want 1 to 65536", c.MaxUnacked)
	case c.ReceiveBuffer < 0 || c.ResolveTimeout < 0:
		return fmt.Errorf("receive buffer %d, resolve timeout %v: want neither below 0", c.ReceiveBuffer, c.ResolveTimeout)
	}
	return c.completeCongestion()
}
