// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/rocev2"
)

// origin is where a frame came from.
type origin struct {
	port int // index
	mac  rocev2.MAC
	vlan uint16 // VID of the outermost tag; 0: untagged
}

// sighting is a frame in a member's name from elsewhere: a reason for an inquiry, no
// proof.
type sighting struct {
	origin
	ip netip.Addr // source address of the frame; the zero Addr if only the MAC address is known
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
	if !w.ports[pi].sightingPolicer.allow(w.now) {
		return
	}
	_, vlan := w.frame.VLAN()
	s := sighting{origin{pi, w.frame.Eth().Src(), vlan & vidMask}, src}
	select {
	case w.slowPath.sightings <- s:
	default: // the control loop is behind: the host will send again
	}
}

// forwardSightings passes on the sightings of the XDP programs, until the watchlist is
// stopped.
func (c *control) forwardSightings(w *bpf.Watchlist) {
	for {
		x, err := w.Next()
		if err != nil {
			return
		}
		pi := c.firstWorker.portIndex(x.Ifindex)
		if pi < 0 {
			continue
		}
		select {
		case c.firstWorker.slowPath.sightings <- sighting{origin{pi, x.MAC, x.VLAN}, x.IP}:
		case <-c.ended:
			return
		}
	}
}
