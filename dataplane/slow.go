// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// slowSlots is how many envelopes may wait for the control plane.
const slowSlots = 256

// datagram is a UDP datagram for a group address, copied out of the UMEM.
type datagram struct {
	port     int
	mac      rocev2.MAC // of the frame
	vlan     uint16     // VID of its outermost tag; 0: none
	partial  bool       // its UDP checksum is one that the host left to its device
	src, dst netip.AddrPort
	n        int
	buf      [envelope.MaxLen]byte
}

// payload returns the datagram's UDP payload.
func (d *datagram) payload() []byte { return d.buf[:d.n] }

// spot returns where the datagram came from.
func (d *datagram) spot() spot { return spot{d.port, d.mac, d.vlan} }

// slowPath carries envelopes from the workers to the control plane in a fixed
// number of slots, so that a flood of them costs the worker no memory: without
// a free slot they are counted and dropped, and their sender tries again.
type slowPath struct {
	free, full chan *datagram
	sights     chan sighting
}

func newSlowPath() *slowPath {
	s := &slowPath{
		free:   make(chan *datagram, slowSlots),
		full:   make(chan *datagram, slowSlots),
		sights: make(chan sighting, sightRoom),
	}
	slots := make([]datagram, slowSlots)
	for i := range slots {
		s.free <- &slots[i]
	}
	return s
}

// envelope hands the decoded frame's UDP payload to the control plane.
func (w *worker) envelope(pi int) {
	f := &w.frame
	payload := f.UDPPayload()
	var d *datagram
	select {
	case d = <-w.slow.free:
	default:
		w.count.drop[DropSlowPath]++
		return
	}
	if len(payload) > len(d.buf) {
		w.count.drop[DropTooLong]++
		w.slow.free <- d
		return
	}
	d.partial = false
	if !f.VerifyUDPChecksum() {
		if d.partial = f.PartialUDPChecksum(); !d.partial {
			w.count.drop[DropBadUDPChecksum]++
			w.slow.free <- d
			return
		}
		w.count.envelopePartial++
	}
	udp := f.UDP()
	d.port, d.n = pi, copy(d.buf[:], payload)
	d.mac = f.Eth().Src()
	_, tci := f.VLAN()
	d.vlan = tci & vidMask
	d.src = netip.AddrPortFrom(f.Src(), udp.SrcPort())
	d.dst = netip.AddrPortFrom(f.Dst(), udp.DstPort())
	w.count.envelopeIn++
	w.slow.full <- d // has room: there are only as many slots
}

// sayPartial tells the operator once of each port that hosts behind it leave UDP checksums to
// their device. Envelopes are accepted like that: their HMAC covers more than the
// checksum does. Other programs that read raw frames here see wrong checksums.
func (c *control) sayPartial(d *datagram) {
	if p := c.crew.ports[d.port]; d.partial && !p.partial {
		p.partial = true
		c.notify(false, "a host behind this port leaves UDP checksums to its interface (checksum offload): its envelopes are accepted and counted as envelope_partial",
			"port", p.name, "host", d.src.Addr(), "remedy", "none is needed; ethtool -K INTERFACE tx off at the host makes them complete")
	}
}
