// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package analytic has closed forms for what is simulated, and a Monte-Carlo of go-back-N: a
// result beside which each simulation stands. None of it knows queues or other traffic.
package analytic

import (
	"math/bits"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Path is a way through switches that store and forward, with links of one rate and delay.
type Path struct {
	Rate    int64 // bit/s
	Delay   topology.Time
	Links   int
	Payload int // bytes of a full packet
	Header  int // bytes of each packet besides, preamble and gap included
}

// onWire returns the time that bytes take on a link.
func (p Path) onWire(bytes int64) topology.Time {
	return topology.Time(float64(bytes) * 8 * float64(topology.Second) / float64(p.Rate))
}

// Transfer returns the time that a message takes on a link, headers included.
func (p Path) Transfer(bytes int64) topology.Time {
	packets := max((bytes+int64(p.Payload)-1)/int64(p.Payload), 1)
	return p.onWire(bytes + packets*int64(p.Header))
}

// Latency returns the time from the begin of a full packet to its end behind the last link.
func (p Path) Latency() topology.Time {
	return topology.Time(p.Links) * (p.Delay + p.onWire(int64(p.Payload+p.Header)))
}

// Lag returns the time from when a full packet has left to when it has come: that by which a message
// comes later than it is sent.
func (p Path) Lag() topology.Time { return p.Latency() - p.onWire(int64(p.Payload+p.Header)) }

// RTT is the latency, and the way of an acknowledgement of no length back.
func (p Path) RTT() topology.Time { return p.Latency() + topology.Time(p.Links)*p.Delay }

// Window returns the number of full packets that are sent in a round trip.
func (p Path) Window() float64 {
	return float64(p.RTT()) / float64(p.onWire(int64(p.Payload+p.Header)))
}

// Message returns the time from the begin of a message to its end behind the last link.
func (p Path) Message(bytes int64) topology.Time {
	last := p.onWire(min(bytes, int64(p.Payload)) + int64(p.Header))
	return p.Transfer(bytes) + topology.Time(p.Links)*p.Delay + topology.Time(p.Links-1)*last
}

// Group is the time in which a group has a message: that of the longest path. It does not
// depend on the number of members.
func Group(p Path, bytes int64) topology.Time { return p.Message(bytes) }

// Rebuild returns the time in which a tree of that height is registered again: a request with 183
// members in each packet of 1,538 bytes to the leaves and the answer to it, and the same once more.
func Rebuild(p Path, members int) topology.Time {
	packets := int64((members + 182) / 183)
	return 4 * topology.Time(p.Links-2) * (p.Delay + p.onWire(packets*1538))
}

// Ring returns the time of a chain of ranks that pass on chunks, with the latency from the first to the last.
func Ring(p Path, bytes int64, ranks, chunks int, latency topology.Time) topology.Time {
	d := float64(p.Transfer(bytes))
	return topology.Time(d*(1+float64(ranks-2)/float64(chunks))) + latency
}

// Long returns the time of HPL's spread and roll over links that send and receive at the same time.
func Long(p Path, bytes int64, ranks int, a topology.Time) topology.Time {
	d := float64(p.Transfer(bytes))
	return topology.Time(2*d*(1-1/float64(ranks))) + topology.Time(bits.Len(uint(ranks-1))+ranks-1)*a
}

// Copies returns the time in which the whole message is sent k times, one after another, over a number of
// hops with the time a each: a broadcast down a tree.
func Copies(p Path, bytes int64, k, hops int, a topology.Time) topology.Time {
	return topology.Time(k)*p.Transfer(bytes) + topology.Time(hops)*a
}

// ScatterDoubling returns the time of a spread by halves and an all-gather by doubling.
func ScatterDoubling(p Path, bytes int64, ranks int, a topology.Time) topology.Time {
	d := float64(p.Transfer(bytes))
	return topology.Time(2*d*(1-1/float64(ranks))) + topology.Time(2*bits.Len(uint(ranks-1)))*a
}
