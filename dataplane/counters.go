// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// dropReason is why the worker did not serve a frame, for reasons that are neither of
// rocev2's decoder nor of the core.
type dropReason uint8

// Reasons of the worker. What each means is in the table dropReasons.
const (
	dropNone dropReason = iota
	dropBadICRC
	dropNoFrame
	dropPortDown
	dropNoLocation
	dropSlowPathFull
	dropNotGroup
	dropTooLong
	dropBadUDPChecksum
	dropSourceGuard
	dropQueueFull
	dropHandoffFull
	dropRateLimit
	dropIsolated
	dropNeighbourDown
	dropBadReport
	dropNotStored
	dropNotKept
	numDrops
)

// The names of the reasons that the control plane mentions, or counts itself.
const (
	FrameTooLong = "frame_too_long" // dropTooLong
	NoLocation   = "no_location"    // dropNoLocation
	Isolated     = "isolated"       // dropIsolated
)

// dropReasons has a row for each dropReason, and a last one for all other values: the name under which packets are
// counted, and what was seen, with its cause, for an operator. docs/COUNTERS.md is made of it.
var dropReasons = [numDrops + 1]struct {
	name, text string
}{
	dropNone:           {name: "none", text: "served"},
	dropBadICRC:        {name: "bad_icrc", text: "a packet that would have been believed has a wrong ICRC: it was damaged, or forged"},
	dropNoFrame:        {name: "umem_exhausted", text: "packet memory is exhausted, so that not every copy would have found room: `umem.frames` is too small for these groups, or a port does not send"},
	dropPortDown:       {name: "port_down", text: "a copy or answer for a port that is down or gone"},
	dropNoLocation:     {name: NoLocation, text: "a copy or answer for a host whose port and MAC address are not known (any more)"},
	dropSlowPathFull:   {name: "slow_path_full", text: "an envelope that came while the control plane was behind: senders repeat them"},
	dropNotGroup:       {name: "not_for_group", text: "a packet of a kind that the worker does not serve"},
	dropTooLong:        {name: FrameTooLong, text: "a packet that is longer than its port takes, has more buffers than a packet may have, or lacks some"},
	dropBadUDPChecksum: {name: "bad_udp_checksum", text: "an envelope with a wrong UDP checksum, which is not that of a host with checksum offload either: it was damaged"},
	dropSourceGuard:    {name: "source_guard", text: "a member's packet that came by another port, or from another MAC address, than where the kernel knows the member, or by another switch than the one that the member is behind"},
	dropQueueFull:      {name: "queue_full", text: "a port takes no more, since its egress queue is full or it does not transmit: this copy or answer alone was lost, and is repaired like a loss on the link"},
	dropHandoffFull:    {name: "handoff_full", text: "the worker that the group belongs to is behind: the packet was not handed to it"},
	dropRateLimit:      {name: "rate_limit", text: "more NAKs, CNPs, envelopes or neighbour requests than one port may bring"},
	dropIsolated:       {name: Isolated, text: "data that came by an isolated port of a bridge, for a group with members behind another isolated port: it is forwarded to no member"},
	dropNeighbourDown:  {name: "neighbour_down", text: "a copy or feedback for a neighbour switch whose adjacency is not up (any more)"},
	dropBadReport:      {name: "bad_report", text: "a report about who may send in a group, from a neighbour's port and MAC address, that has a wrong MAC: the switches have different keys, or it was forged; or with fields that it cannot have"},
	dropNotStored:      {name: "not_stored", text: "data that the XDP programs have claimed and not stored within 10 ms: the group is taken off the fast path, and the source sends it again; processors stand still, or the kernel has a defect"},
	dropNotKept:        {name: "not_in_ring", text: "a copy of a packet that has left the ring of its group: all receivers had acknowledged it"},
	numDrops:           {name: "invalid"},
}

// String returns the name under which d is counted.
func (d dropReason) String() string { return dropReasons[min(d, numDrops)].name }

// Text returns the meaning of d, for an operator.
func (d dropReason) Text() string { return dropReasons[min(d, numDrops)].text }

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
	envelopePartial         uint64 // envelopes of envelopeIn; see rocev2.Frame.PartialUDPChecksum
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
	Name   string // the name, as in api.Stats
	Text   string
	Normal bool     // true: the reason occurs in normal operation
	Rules  []string // the rules of docs/AGGREGATION.md by which packets are not served
}

// ReasonTable has reasons by their numbers. The first one is none.
type ReasonTable []CountedReason

// The reasons under which workers count packets.
var (
	decodeReasons = NewReasonTable("decode_", rocev2.NumReasons)
	CoreReasons   = NewReasonTable("", mcast.NumReasons)
	workerReasons = NewReasonTable("", numDrops)
)

// NewReasonTable returns the table of the reasons below end, each name with prefix.
func NewReasonTable[R interface {
	~uint8
	String() string
	Text() string
}](prefix string, end R) (t ReasonTable) {
	for r := range end {
		c := CountedReason{Name: prefix + r.String(), Text: r.Text()}
		if x, ok := any(r).(interface{ Normal() bool }); ok {
			c.Normal = x.Normal()
		}
		if x, ok := any(r).(interface{ Rules() []string }); ok {
			c.Rules = x.Rules()
		}
		t = append(t, c)
	}
	return t
}

// AddTo adds counts, by the numbers of reasons, to those by name: of reasons that are normal for
// the protocol, and of lost or refused packets. A reason that has not occurred gets no entry.
func (t ReasonTable) AddTo(normal, drops map[string]uint64, counts []uint64) {
	for i, r := range t[1:] {
		if n := counts[i+1]; n > 0 && r.Normal {
			normal[r.Name] += n
		} else if n > 0 {
			drops[r.Name] += n
		}
	}
}

// grown returns the name of a reason whose count differs; "" if there is none.
func (t ReasonTable) grown(was, now []uint64) string {
	for i, n := range now {
		if n != was[i] {
			return t[i].Name
		}
	}
	return ""
}

// Reasons returns all reasons under which workers count packets, in a fixed order: the
// decoder's, the core's, the workers'.
func Reasons() []CountedReason {
	return slices.Concat(decodeReasons[1:], CoreReasons[1:], workerReasons[1:])
}

// unserved returns every reason that has occurred, as ReasonTable.AddTo has it.
func (c *counters) unserved() (normal, drops map[string]uint64) {
	normal, drops = make(map[string]uint64), make(map[string]uint64)
	decodeReasons.AddTo(normal, drops, c.decode[:])
	CoreReasons.AddTo(normal, drops, c.core[:])
	workerReasons.AddTo(normal, drops, c.drop[:])
	return normal, drops
}
