// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// port is the sending end of one direction of a link. Packets leave in the order in which they
// come, so the time when it is free says how many bytes wait. What every packet touches comes
// first, in one line of a cache.
type port struct {
	freeAt Time
	*class
	peer      uint32 // the port at the other end
	partition int32  // the partition of the node at the other end
	node      int32  // the node that it belongs to
	down      bool
	cut       bool     // the neighbours know that the link is down
	sessions  uint16   // the number of sessions that have ended
	wait      *waiting // the packets that wait, with PFC; without, freeAt says it all

	stats PortStats

	// Random numbers are counted: the result does not depend on what happens elsewhere.
	random uint64 // numbers drawn
	seed   uint64

	trainUntil Time // the time when the last packet of the last train came

	tap *tap // nil: it is not observed
}

// portAt is what an arrival needs of a port: less than a line of a cache, since it is the first thing
// that each arrival reads.
type portAt struct {
	node     int32          // the node that it belongs to
	neighbor mcast.Neighbor // the number of the switch at the other end; 0: a host
}

// class is what ports of the same kind of link have in common.
type class struct {
	delay  Time
	psByte Time // time of a byte; 0: it is no whole number
	rate   int64
	most   Time // a packet that would wait longer, itself included, is dropped

	loss    uint64 // a random number below is a loss
	damaged uint64 // one below, and not below loss, is a corruption; 0: none is drawn

	ecnMin, ecnMax Time
	ecnSlope       float64 // probability for each picosecond above ecnMin
}

// PortStats counts what a port has sent. All counters only grow.
type PortStats struct {
	Packets, Bytes uint64
	Longest        Time   // the longest time that a packet waited, or would have without pauses
	Dropped        uint64 // the queue was full
	Lost           uint64 // packets lost on the link
	Corrupted      uint64
	Marked         uint64 // CE
	Pauses         uint64 // PFC: how often it was paused
	Paused         Time   // PFC: for how long
}

// classes are those of a network.
type classes map[class]*class

// of returns the class of a link's direction to a node.
func (k classes) of(c *Config, l *topology.Link, to topology.Node) *class {
	p := class{delay: l.Delay, rate: l.Rate}
	if bits := int64(8 * topology.Second); bits%l.Rate == 0 {
		p.psByte = Time(bits / l.Rate)
	}
	p.most = p.timeOf(c.Queue)
	loss := l.LossTo(to)
	p.loss = probability(loss)
	p.damaged = probability(loss + (1-loss)*l.Corruption)
	if c.ECN.Probability > 0 {
		p.ecnMin, p.ecnMax = p.timeOf(c.ECN.Min), p.timeOf(c.ECN.Max)
		p.ecnSlope = c.ECN.Probability / float64(max(p.ecnMax-p.ecnMin, 1))
	} else {
		p.ecnMin, p.ecnMax = math.MaxInt64, math.MaxInt64
	}
	if k[p] == nil {
		k[p] = &p
	}
	return k[p]
}

// newPort returns a port of a node with n as its number.
func newPort(c *Config, k *class, node int32, n uint32) port {
	p := port{freeAt: -setup, trainUntil: math.MinInt64, class: k, node: node, seed: mix(c.Seed ^ mix(uint64(n)+1))}
	if c.PFC.XOff > 0 {
		p.wait = &waiting{}
	}
	return p
}

// probability returns p as a share of the 64-bit numbers.
func probability(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(p * (1 << 63) * 2)
}

// timeOf returns how long a number of bytes takes.
func (p *class) timeOf(bytes int64) Time {
	if p.psByte != 0 {
		return Time(bytes) * p.psByte
	}
	bits := 8 * bytes
	return Time(bits/p.rate*int64(topology.Second)) + Time(float64(bits%p.rate)/float64(p.rate)*float64(topology.Second))
}

// draw returns the next random number of the port.
func (p *port) draw() uint64 {
	p.random++
	return mix(p.seed + p.random*0x9E3779B97F4A7C15)
}

// mustMark reports whether a packet that waits for that time is to be marked.
func (p *port) mustMark(wait Time) bool {
	if wait >= p.ecnMax {
		return true
	}
	return float64(p.draw()>>11)/(1<<53) < float64(wait-p.ecnMin)*p.ecnSlope
}

// backlog returns the time that the packets that wait at a port take.
func (p *port) backlog(now Time) Time {
	t := max(p.freeAt-now, 0)
	if p.wait != nil {
		t += p.wait.length
	}
	return t
}

// room returns when a packet of that length fits into the queue of a port.
func (p *port) room(now Time, bytes int64) Time {
	return now + p.backlog(now) + p.timeOf(bytes) - p.most
}
