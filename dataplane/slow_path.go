// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"sync/atomic"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Slots for envelopes that wait for the control plane: renewals, which extend leases,
// relays, which come from neighbours, and all others. Envelopes from one port take at most a quarter of the slots, so that its
// hosts cannot take those of others.
const (
	renewalSlots = 128
	requestSlots = 256
	relaySlots   = 256
	portShare    = 4
)

// Datagram is a UDP datagram for a group address, copied out of the UMEM: an envelope, or,
// with the port of RoCEv2, a management datagram (MAD) without the headers below it. It is
// valid until Release.
type Datagram struct {
	From     Origin
	Src, Dst netip.AddrPort
	Partial  bool // the sending host left the UDP checksum to its device
	// Neighbour is the switch that has sent it; 0: a host.
	Neighbour mcast.Neighbor
	class     *slotClass
	length    int
	buf       [envelope.MaxLen]byte
}

// Payload returns the datagram's UDP payload.
func (d *Datagram) Payload() []byte { return d.buf[:d.length] }

// slowPath carries envelopes from the workers to the control plane in a fixed number of
// slots, so that a flood of envelopes costs a worker no memory: an envelope without a
// free slot is counted and dropped, and its sender tries again.
type slowPath struct {
	renewals, requests, relays *slotClass
	sightings                  chan Sighting
}

// slotClass is the set of slots for one kind of envelope.
type slotClass struct {
	free, queued chan *Datagram
	usedByPort   []atomic.Int32 // the slots that a port's envelopes occupy, by port
	maxPerPort   int32          // the limit of each
}

func newSlowPath(ports int) *slowPath {
	return &slowPath{
		renewals: newSlotClass(renewalSlots, ports), requests: newSlotClass(requestSlots, ports), relays: newSlotClass(relaySlots, ports),
		sightings: make(chan Sighting, sightingSlots),
	}
}

func newSlotClass(slots, ports int) *slotClass {
	l := &slotClass{
		free: make(chan *Datagram, slots), queued: make(chan *Datagram, slots),
		usedByPort: make([]atomic.Int32, ports), maxPerPort: int32(slots / portShare),
	}
	ds := make([]Datagram, slots)
	for i := range ds {
		ds[i].class = l
		l.free <- &ds[i]
	}
	return l
}

// queues returns the API's view of the queues.
func (s *slowPath) queues() api.Queues {
	return api.Queues{Renewals: s.renewals.fill(), Requests: s.requests.fill(), Relays: s.relays.fill()}
}

func (l *slotClass) fill() api.Ring { return api.Ring{Used: len(l.queued), Size: cap(l.queued)} }

// acquire returns a slot for an envelope from a port, or nil if there is none.
func (l *slotClass) acquire(port int) *Datagram {
	if l.usedByPort[port].Add(1) <= l.maxPerPort {
		select {
		case d := <-l.free:
			d.From.Port = port
			return d
		default:
		}
	}
	l.usedByPort[port].Add(-1)
	return nil
}

// Release frees d's slot.
func (d *Datagram) Release() {
	d.class.usedByPort[d.From.Port].Add(-1)
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
	from := w.ports[pi].neighbour.from(f.Eth().Src())
	switch {
	case from != 0:
		l = w.slowPath.relays
	case envelope.IsRenewal(payload):
		l = w.slowPath.renewals
	}
	d := l.acquire(pi)
	if d == nil {
		w.count.drop[dropSlowPathFull]++
		return
	}
	if d.Partial = partial; partial {
		w.count.envelopePartial++
	}
	d.Neighbour = from
	w.count.envelopeIn++
	w.pass(d, payload, f.UDP().SrcPort(), f.UDP().DstPort())
}

// queueMAD passes the decoded frame's management datagram to the control plane. It takes a
// slot of an envelope that is no renewal. One of a switch is none of a member here.
func (w *worker) queueMAD(pi int) {
	f := &w.frame
	switch {
	case w.ports[pi].neighbour.from(f.Eth().Src()) != 0:
		w.count.drop[dropSourceGuard]++
		return
	case !f.VerifyMAD():
		w.count.drop[dropBadICRC]++
		return
	}
	d := w.slowPath.requests.acquire(pi)
	if d == nil {
		w.count.drop[dropSlowPathFull]++
		return
	}
	d.Partial, d.Neighbour = false, 0
	w.pass(d, f.MAD(), rocev2.UDPPort, rocev2.UDPPort)
}

// pass passes d, with the decoded frame's addresses, to the control plane.
func (w *worker) pass(d *Datagram, payload []byte, srcPort, dstPort uint16) {
	f := &w.frame
	d.length = copy(d.buf[:], payload)
	d.From.MAC = f.Eth().Src()
	_, tci := f.VLAN()
	d.From.VLAN = tci & vidMask
	d.Src = netip.AddrPortFrom(f.Src(), srcPort)
	d.Dst = netip.AddrPortFrom(f.Dst(), dstPort)
	d.class.queued <- d // has room: its capacity is the number of slots
}

// IsMAD reports whether d is a management datagram.
func (d *Datagram) IsMAD() bool { return d.Dst.Port() == rocev2.UDPPort }
