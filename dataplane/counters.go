// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// dropReason is why the worker did not serve a frame, for reasons that are neither of
// rocev2's decoder nor of the core.
type dropReason uint8

// Reasons of the worker. Each has a counter; see dropNames.
const (
	dropNone           dropReason = iota
	dropBadICRC                   // a packet that NeedVerify was set for has a wrong ICRC
	dropNoFrame                   // UMEM exhausted: not enough free frames for every copy
	dropPortDown                  // the port of the copy or reply is down or gone
	dropNoLocation                // the member's location is not, or no longer, known
	dropSlowPathFull              // the control plane is behind: an envelope was not passed on
	dropNotGroup                  // steered here, but of no kind that the worker serves
	dropTooLong                   // longer than its port takes, in more buffers than a packet may have, or torn
	dropBadUDPChecksum            // an envelope whose UDP checksum is wrong
	dropSourceGuard               // a member's packet from another port or MAC address than the member's
	dropQueueFull                 // a port admits no more: only this copy or reply was not sent
	dropHandoffFull               // the owner of the group is behind: the packet was not handed off
	dropRateLimit                 // more NAKs, CNPs, envelopes or neighbour requests than the port's limit
	dropIsolated                  // data from an isolated port to a group with members behind another one
	dropNeighbourDown             // the switch that the copy or feedback is for is not up
	dropBadReport                 // a neighbour's report with a wrong MAC or field
	dropNotStored                 // a packet that the XDP programs have claimed and not stored
	numDrops
)

// The names of the reasons that the control plane mentions, or counts itself.
const (
	FrameTooLong = "frame_too_long" // dropTooLong
	NoLocation   = "no_location"    // dropNoLocation
	Isolated     = "isolated"       // dropIsolated
)

var dropNames = [numDrops]string{
	dropNone:           "none",
	dropBadICRC:        "bad_icrc",
	dropNoFrame:        "umem_exhausted",
	dropPortDown:       "port_down",
	dropNoLocation:     NoLocation,
	dropSlowPathFull:   "slow_path_full",
	dropNotGroup:       "not_for_group",
	dropTooLong:        FrameTooLong,
	dropBadUDPChecksum: "bad_udp_checksum",
	dropSourceGuard:    "source_guard",
	dropQueueFull:      "queue_full",
	dropHandoffFull:    "handoff_full",
	dropRateLimit:      "rate_limit",
	dropIsolated:       Isolated,
	dropNeighbourDown:  "neighbour_down",
	dropBadReport:      "bad_report",
	dropNotStored:      "not_stored",
}

// String returns the name under which d is counted.
func (d dropReason) String() string {
	if d < numDrops {
		return dropNames[d]
	}
	return "invalid"
}

// dropTexts explain the worker's reasons to an operator: what was seen, and its cause.
// docs/COUNTERS.md is generated from them.
var dropTexts = [numDrops]string{
	dropNone:           "served",
	dropBadICRC:        "a packet that would have been believed has a wrong ICRC: it was damaged, or forged",
	dropNoFrame:        "packet memory is exhausted, so that not every copy would have found room: `umem.frames` is too small for these groups, or a port does not send",
	dropPortDown:       "a copy or answer for a port that is down or gone",
	dropNoLocation:     "a copy or answer for a host whose port and MAC address are not known (any more)",
	dropSlowPathFull:   "an envelope that came while the control plane was behind: senders repeat them",
	dropNotGroup:       "a packet of a kind that the worker does not serve",
	dropTooLong:        "a packet that is longer than its port takes, has more buffers than a packet may have, or lacks some",
	dropBadUDPChecksum: "an envelope with a wrong UDP checksum, which is not that of a host with checksum offload either: it was damaged",
	dropSourceGuard:    "a member's packet that came by another port, or from another MAC address, than where the kernel knows the member, or by another switch than the one that the member is behind",
	dropQueueFull:      "a port takes no more, since its egress queue is full or it does not transmit: this copy or answer alone was lost, and is repaired like a loss on the link",
	dropHandoffFull:    "the worker that the group belongs to is behind: the packet was not handed to it",
	dropRateLimit:      "more NAKs, CNPs, envelopes or neighbour requests than one port may bring",
	dropIsolated:       "data that came by an isolated port of a bridge, for a group with members behind another isolated port: it is forwarded to no member",
	dropNeighbourDown:  "a copy or feedback for a neighbour switch whose adjacency is not up (any more)",
	dropBadReport:      "a report about who may send in a group, from a neighbour's port and MAC address, that has a wrong MAC: the switches have different keys, or it was forged; or with fields that it cannot have",
	dropNotStored:      "data that the XDP programs have claimed and not stored within 10 ms: the group is taken off the fast path, and the source sends it again; processors stand still, or the kernel has a defect",
}

// Text returns the meaning of d, for an operator.
func (d dropReason) Text() string {
	if d < numDrops {
		return dropTexts[d]
	}
	return ""
}

// counters are one worker's: plain words that only its goroutine uses. Others read them
// by Plane.Stats.
type counters struct {
	dataIn, copies          uint64
	resent                  uint64 // copies of retained packets, of copies
	dataBytes               uint64 // payload of the data that was forwarded
	feedbackIn, feedbackOut uint64
	keepalives              uint64 // keepalive probes of members' numbering
	neighbour               uint64
	envelopeIn, envelopeOut uint64
	envelopePartial         uint64 // of envelopeIn; see rocev2.Frame.PartialUDPChecksum
	decode                  [rocev2.NumReasons]uint64
	core                    [mcast.NumReasons]uint64
	drop                    [numDrops]uint64
}

// add adds the counts of o to c.
func (c *counters) add(o *counters) {
	c.dataIn += o.dataIn
	c.copies += o.copies
	c.dataBytes += o.dataBytes
	c.resent += o.resent
	c.feedbackIn += o.feedbackIn
	c.feedbackOut += o.feedbackOut
	c.keepalives += o.keepalives
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
}

// CountedReason is a reason for which packets are not served.
type CountedReason struct {
	Name   string // as in api.Stats
	Text   string
	Normal bool // it occurs in normal operation
}

// reasonCounter is a reason with its counter.
type reasonCounter struct {
	CountedReason
	count func(*counters) uint64
}

// Reasons returns all reasons under which workers count packets, in a fixed order: the
// decoder's, the core's, the workers'.
func Reasons() (list []CountedReason) {
	for _, r := range reasonCounters() {
		list = append(list, r.CountedReason)
	}
	return list
}

func reasonCounters() (list []reasonCounter) {
	for r := rocev2.OK + 1; r < rocev2.NumReasons; r++ {
		list = append(list, reasonCounter{CountedReason{"decode_" + r.String(), r.Text(), false}, func(c *counters) uint64 { return c.decode[r] }})
	}
	for r := mcast.None + 1; r < mcast.NumReasons; r++ {
		list = append(list, reasonCounter{CountedReason{r.String(), r.Text(), r.Normal()}, func(c *counters) uint64 { return c.core[r] }})
	}
	for d := dropNone + 1; d < numDrops; d++ {
		list = append(list, reasonCounter{CountedReason{d.String(), d.Text(), false}, func(c *counters) uint64 { return c.drop[d] }})
	}
	return list
}

// unserved returns every reason that has occurred, by name: those that are normal for the
// protocol, and those of lost or refused packets.
func (c *counters) unserved() (normal, drops map[string]uint64) {
	normal, drops = make(map[string]uint64), make(map[string]uint64)
	for _, r := range reasonCounters() {
		if n := r.count(c); n > 0 && r.Normal {
			normal[r.Name] = n
		} else if n > 0 {
			drops[r.Name] = n
		}
	}
	return normal, drops
}
