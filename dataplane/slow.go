// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"sync/atomic"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// How many envelopes may wait for the control plane: renewals, which keep leases, and
// all others. What one port brings takes a quarter of the places at most, so that its
// hosts cannot take those of others.
const (
	renewalSlots = 128
	requestSlots = 256
	portShare    = 4
)

// datagram is a UDP datagram for a group address, copied out of the UMEM.
type datagram struct {
	port     int
	lane     *lane
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
	renewals, requests *lane
	sights             chan sighting
}

// lane is the slots of one kind of envelopes.
type lane struct {
	free, full chan *datagram
	waiting    []atomic.Int32 // by port: slots that its envelopes have
	most       int32          // of them
}

func newSlowPath(ports int) *slowPath {
	return &slowPath{newLane(renewalSlots, ports), newLane(requestSlots, ports), make(chan sighting, sightRoom)}
}

func newLane(slots, ports int) *lane {
	l := &lane{
		free: make(chan *datagram, slots), full: make(chan *datagram, slots),
		waiting: make([]atomic.Int32, ports), most: int32(slots / portShare),
	}
	ds := make([]datagram, slots)
	for i := range ds {
		ds[i].lane = l
		l.free <- &ds[i]
	}
	return l
}

// take returns a slot for an envelope from a port; nil if there is none.
func (l *lane) take(port int) *datagram {
	if l.waiting[port].Add(1) <= l.most {
		select {
		case d := <-l.free:
			d.port = port
			return d
		default:
		}
	}
	l.waiting[port].Add(-1)
	return nil
}

// give frees d's slot.
func (d *datagram) give() {
	d.lane.waiting[d.port].Add(-1)
	d.lane.free <- d
}

// envelope hands the decoded frame's UDP payload to the control plane.
func (w *worker) envelope(pi int) {
	f := &w.frame
	payload := f.UDPPayload()
	if len(payload) > envelope.MaxLen {
		w.count.drop[DropTooLong]++
		return
	}
	partial := false
	if !f.VerifyUDPChecksum() {
		if partial = f.PartialUDPChecksum(); !partial {
			w.count.drop[DropBadUDPChecksum]++
			return
		}
	}
	l := w.slow.requests
	if envelope.IsRenewal(payload) {
		l = w.slow.renewals
	}
	d := l.take(pi)
	if d == nil {
		w.count.drop[DropSlowPath]++
		return
	}
	if d.partial = partial; partial {
		w.count.envelopePartial++
	}
	udp := f.UDP()
	d.n = copy(d.buf[:], payload)
	d.mac = f.Eth().Src()
	_, tci := f.VLAN()
	d.vlan = tci & vidMask
	d.src = netip.AddrPortFrom(f.Src(), udp.SrcPort())
	d.dst = netip.AddrPortFrom(f.Dst(), udp.DstPort())
	w.count.envelopeIn++
	l.full <- d // has room: there are only as many slots
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
