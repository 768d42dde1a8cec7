// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Origin is where a frame came from, or goes to: a host's attachment to the switch.
type Origin struct {
	Port int // index; -1: not known
	MAC  rocev2.MAC
	VLAN uint16 // VID of the outermost tag; 0: untagged
}

// Sighting is a frame in a member's name from elsewhere: a reason for an inquiry, no
// proof.
type Sighting struct {
	Origin
	IP netip.Addr // source address of the frame; the zero Addr if only the MAC address is known
}

// sightingSlots is the number of sightings that may wait for the control loop,
// sightingRate the number per second that a worker reports from one port.
const (
	sightingSlots = 256
	sightingRate  = 100
)

// reportSighting reports that the frame in w.frame came by port pi with source address
// src.
func (w *worker) reportSighting(pi int, src netip.Addr) {
	if !w.ports[pi].policers.sightings.Allow(w.now) {
		return
	}
	_, vlan := w.frame.VLAN()
	s := Sighting{Origin{pi, w.frame.Eth().Src(), vlan & vidMask}, src}
	select {
	case w.slowPath.sightings <- s:
	default: // the control loop is behind: the host will send again
	}
}

// forwardSightings passes on the sightings of the XDP programs, until the watchlist is
// stopped, or done is closed.
func (p *Plane) forwardSightings(done <-chan struct{}) {
	list := p.steering.Watchlist()
	for {
		x, err := list.Next()
		if err != nil {
			return
		}
		pi := p.PortIndex(x.Ifindex)
		if pi < 0 {
			continue
		}
		select {
		case p.slowPath.sightings <- Sighting{Origin{pi, x.MAC, x.VLAN}, x.IP}:
		case <-done:
			return
		}
	}
}
