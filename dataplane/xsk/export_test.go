// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/bpf"
)

// VethPort is a socket on one end of a veth pair, with the other end, for the tests of
// package xsk_test.
type VethPort struct {
	*Socket
	Umem   *Umem
	Pool   *Pool
	Poller *SocketPoller
	wire   *wire
	buf    [10000]byte
}

// OpenVeth opens a VethPort, which has no frames to receive into.
func OpenVeth(t *testing.T, frames, frameSize, ring, mtu int, multiBuffer bool) *VethPort {
	t.Helper()
	d := newEmptyDevice(t, frames, frameSize, ring)
	w := newWireMTU(t, newSteering(t), "p0", "h0", bpf.Native, mtu)
	cfg := w.config(ring)
	cfg.MultiBuffer = multiBuffer
	s, err := Open(d.umem, cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.socks = append(d.socks, s)
	if err := w.prog.SetSocket(0, s.FD()); err != nil {
		t.Fatal(err)
	}
	return &VethPort{Socket: s, Umem: d.umem, Pool: d.pool, Poller: newPoller(t, d.socks), wire: w}
}

// Arrive sends a frame from the other end.
func (p *VethPort) Arrive(frame []byte) { p.wire.send(frame) }

// Left returns the next frame that the other end gets.
func (p *VethPort) Left() []byte { return bytes.Clone(p.wire.capture(p.buf[:])) }

// SetUp changes the state of the socket's end.
func (p *VethPort) SetUp(up bool) {
	p.wire.t.Helper()
	set := netlink.LinkSetDown
	if up {
		set = netlink.LinkSetUp
	}
	if err := set(p.link()); err != nil {
		p.wire.t.Fatal(err)
	}
	if up {
		p.wire.waitUp()
	}
}

// Vanish deletes the pair.
func (p *VethPort) Vanish() {
	p.wire.t.Helper()
	if err := netlink.LinkDel(p.link()); err != nil {
		p.wire.t.Fatal(err)
	}
}

func (p *VethPort) link() netlink.Link {
	l, err := netlink.LinkByName(p.wire.port)
	if err != nil {
		p.wire.t.Fatal(err)
	}
	return l
}
