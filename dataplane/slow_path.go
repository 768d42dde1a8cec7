// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"sync/atomic"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Slots for envelopes that wait for the control plane: renewals, which extend leases, and
// all others. Envelopes from one port take at most a quarter of the slots, so that its
// hosts cannot take those of others.
const (
	renewalSlots = 128
	requestSlots = 256
	portShare    = 4
)

// datagram is a UDP datagram for a group address, copied out of the UMEM.
type datagram struct {
	port     int
	class    *slotClass
	mac      rocev2.MAC // of the frame
	vlan     uint16     // VID of the frame's outermost tag; 0: none
	partial  bool       // the sending host left the UDP checksum to its device
	src, dst netip.AddrPort
	length   int
	buf      [envelope.MaxLen]byte
}

// payload returns the datagram's UDP payload.
func (d *datagram) payload() []byte { return d.buf[:d.length] }

// origin returns the port, MAC address and VLAN that the datagram came from.
func (d *datagram) origin() origin { return origin{d.port, d.mac, d.vlan} }

// slowPath carries envelopes from the workers to the control plane in a fixed number of
// slots, so that a flood of envelopes costs a worker no memory: an envelope without a
// free slot is counted and dropped, and its sender tries again.
type slowPath struct {
	renewals, requests *slotClass
	sightings          chan sighting
}

// slotClass is the set of slots for one kind of envelope.
type slotClass struct {
	free, queued chan *datagram
	usedByPort   []atomic.Int32 // by port: slots that its envelopes occupy
	maxPerPort   int32          // the limit of each
}

func newSlowPath(ports int) *slowPath {
	return &slowPath{newSlotClass(renewalSlots, ports), newSlotClass(requestSlots, ports), make(chan sighting, sightingSlots)}
}

func newSlotClass(slots, ports int) *slotClass {
	l := &slotClass{
		free: make(chan *datagram, slots), queued: make(chan *datagram, slots),
		usedByPort: make([]atomic.Int32, ports), maxPerPort: int32(slots / portShare),
	}
	ds := make([]datagram, slots)
	for i := range ds {
		ds[i].class = l
		l.free <- &ds[i]
	}
	return l
}

// acquire returns a slot for an envelope from a port, or nil if there is none.
func (l *slotClass) acquire(port int) *datagram {
	if l.usedByPort[port].Add(1) <= l.maxPerPort {
		select {
		case d := <-l.free:
			d.port = port
			return d
		default:
		}
	}
	l.usedByPort[port].Add(-1)
	return nil
}

// release frees d's slot.
func (d *datagram) release() {
	d.class.usedByPort[d.port].Add(-1)
	d.class.free <- d
}

// queueEnvelope passes the decoded frame's UDP payload to the control plane.
func (w *worker) queueEnvelope(pi int) {
	f := &w.frame
	payload := f.UDPPayload()
	if len(payload) > envelope.MaxLen {
		w.count.drop[dropTooLong]++
		return
	}
	partial := false
	if !f.VerifyUDPChecksum() {
		if partial = f.PartialUDPChecksum(); !partial {
			w.count.drop[dropBadUDPChecksum]++
			return
		}
	}
	l := w.slowPath.requests
	if envelope.IsRenewal(payload) {
		l = w.slowPath.renewals
	}
	d := l.acquire(pi)
	if d == nil {
		w.count.drop[dropSlowPathFull]++
		return
	}
	if d.partial = partial; partial {
		w.count.envelopePartial++
	}
	udp := f.UDP()
	d.length = copy(d.buf[:], payload)
	d.mac = f.Eth().Src()
	_, tci := f.VLAN()
	d.vlan = tci & vidMask
	d.src = netip.AddrPortFrom(f.Src(), udp.SrcPort())
	d.dst = netip.AddrPortFrom(f.Dst(), udp.DstPort())
	w.count.envelopeIn++
	l.queued <- d // has room: its capacity is the number of slots
}

// reportPartial tells the operator once per port that hosts behind it leave UDP checksums
// to their device. Such envelopes are accepted: their HMAC covers more than the checksum
// does. Other programs that read raw frames here see wrong checksums.
func (c *control) reportPartial(d *datagram) {
	if p := c.workers.ports[d.port]; d.partial && !p.partialReported {
		p.partialReported = true
		c.notify(false, "a host behind this port leaves UDP checksums to its interface (checksum offload): its envelopes are accepted and counted as envelope_partial",
			"port", p.name, "host", d.src.Addr(), "remedy", "none is needed; ethtool -K INTERFACE tx off at the host makes them complete")
	}
}
