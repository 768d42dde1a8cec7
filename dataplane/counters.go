// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Drop says why the worker did not serve a frame, where neither rocev2's decode
// nor the core is the one to say.
type Drop uint8

// Reasons of the worker. Each has a counter; see dropNames.
const (
	DropNone           Drop = iota
	DropBadICRC             // a packet that would have been believed has a wrong ICRC
	DropNoFrame             // UMEM exhausted: not enough free frames for every copy
	DropTxFull              // a port's TX ring is full: nothing of the packet was sent
	DropPortDown            // the copy's or answer's port is down or gone
	DropNoLocation          // the member's place on this switch is not known (any more)
	DropSlowPath            // the control plane is behind: an envelope was not handed on
	DropNotGroup            // steered here but of no kind the worker serves
	DropTooLong             // longer than the port that it is for takes, in more buffers than a packet may be, or torn
	DropBadUDPChecksum      // an envelope whose UDP checksum is wrong
	DropWrongPlace          // a member's packet from another port or MAC address than the member's
	DropQueueFull           // a port's egress queue is full: this copy or answer alone was not sent
	DropPostFull            // the worker that the group belongs to is behind: the packet was not handed to it
	DropRateLimit           // more NAKs, CNPs, envelopes or neighbour requests than the port may bring
	numDrops
)

var dropNames = [numDrops]string{
	DropNone:           "none",
	DropBadICRC:        "bad_icrc",
	DropNoFrame:        "umem_exhausted",
	DropTxFull:         "tx_ring_full",
	DropPortDown:       "port_down",
	DropNoLocation:     "no_location",
	DropSlowPath:       "slow_path_full",
	DropNotGroup:       "not_for_group",
	DropTooLong:        "frame_too_long",
	DropBadUDPChecksum: "bad_udp_checksum",
	DropWrongPlace:     "wrong_place",
	DropQueueFull:      "queue_full",
	DropPostFull:       "handover_full",
	DropRateLimit:      "rate_limit",
}

// String returns the name under which d is counted.
func (d Drop) String() string {
	if d < numDrops {
		return dropNames[d]
	}
	return "invalid"
}

// counters are a worker's own: plain words that only its goroutine touches.
// Others read them through worker.do.
type counters struct {
	dataIn, copies          uint64
	feedbackIn, feedbackOut uint64
	neighbour               uint64
	envelopeIn, envelopeOut uint64
	envelopePartial         uint64 // of envelopeIn; see rocev2.Frame.PartialUDPChecksum
	decode                  [rocev2.NumReasons]uint64
	core                    [mcast.NumReasons]uint64
	drop                    [numDrops]uint64
	envelope                [envelope.NumDrops]uint64
}

// add adds what o counts to c.
func (c *counters) add(o *counters) {
	c.dataIn += o.dataIn
	c.copies += o.copies
	c.feedbackIn += o.feedbackIn
	c.feedbackOut += o.feedbackOut
	c.neighbour += o.neighbour
	c.envelopeIn += o.envelopeIn
	c.envelopeOut += o.envelopeOut
	c.envelopePartial += o.envelopePartial
	for i, n := range o.decode {
		c.decode[i] += n
	}
	for i, n := range o.core {
		c.core[i] += n
	}
	for i, n := range o.drop {
		c.drop[i] += n
	}
	for i, n := range o.envelope {
		c.envelope[i] += n
	}
}

// drops returns every reason that has occurred, by name.
func (c *counters) drops() map[string]uint64 {
	m := make(map[string]uint64)
	for r, n := range c.decode {
		if n > 0 && rocev2.Reason(r) != rocev2.OK {
			m["decode_"+rocev2.Reason(r).String()] = n
		}
	}
	for r, n := range c.core {
		if n > 0 && mcast.Reason(r) != mcast.None {
			m[mcast.Reason(r).String()] = n
		}
	}
	for r, n := range c.drop {
		if n > 0 && Drop(r) != DropNone {
			m[Drop(r).String()] = n
		}
	}
	for r, n := range c.envelope {
		if n > 0 && envelope.Drop(r) != envelope.NoDrop {
			m["envelope_"+envelope.Drop(r).String()] = n
		}
	}
	return m
}
