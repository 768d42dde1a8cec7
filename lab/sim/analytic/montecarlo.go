// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package analytic

import (
	"fmt"
	"math/rand/v2"
)

// Filter is what a switch makes of NAKs for packets that are on their way again already.
type Filter int

// Filters.
const (
	// Ideal drops them.
	Ideal Filter = iota
	// Literal is the paper's: a NAK that waited until all others had what is before it is passed on,
	// although its packet was sent again in the meantime.
	Literal
)

// MonteCarlo is a transfer by go-back-N to receivers behind lossy copies. Time is counted in packets.
type MonteCarlo struct {
	Packets int
	Copies  int     // independent lossy copies, of which all are needed
	Loss    float64 // the loss of each copy of a packet
	LostNAK float64 // probability that a NAK is lost on its way to the sender
	// Once means that a receiver sends no second NAK before the packet of the first one has come, as
	// RoCE's responders do; else it repeats the NAK after a round trip.
	Once    bool
	Window  int // packets in a round trip
	Timeout int // the timeout of the sender, from the last packet on
	Filter  Filter
	Seed    uint64
	Runs    int
}

// Goodput returns the mean of packets over time.
func (m MonteCarlo) Goodput() (float64, error) {
	if m.Packets < 1 || m.Copies < 1 || m.Runs < 1 || m.Window < 1 || m.Timeout < 1 || !(m.Loss >= 0 && m.Loss < 0.5) || !(m.LostNAK >= 0 && m.LostNAK < 0.5) {
		return 0, fmt.Errorf("analytic: %d packets, %d copies, %d runs, window %d, timeout %d, loss %v, of NAKs %v; want 1 or more of each, and losses below 0.5", m.Packets, m.Copies, m.Runs, m.Window, m.Timeout, m.Loss, m.LostNAK)
	}
	sum := 0.0
	for run := range m.Runs {
		x := transfer{MonteCarlo: m, random: rand.New(rand.NewPCG(m.Seed, uint64(run))), expected: make([]int, m.Copies), noted: make([]int, m.Copies), sentAt: make([]int, m.Packets), held: never}
		for i := range x.noted {
			x.noted[i] = -m.Window - 1
		}
		sum += float64(m.Packets) / float64(x.run())
	}
	return sum / float64(m.Runs), nil
}

// transfer is one run.
type transfer struct {
	MonteCarlo
	random   *rand.Rand
	next     int   // packet that is sent
	expected []int // the first packet that is missing, by copy
	noted    []int // the time when it has sent its last NAK, by copy; below 0: none of this packet
	sentAt   []int // the time of sending, by packet
	least    int   // the least of expected
	held     int   // packet of a NAK that waits at the switch
	naks     []nak // the NAKs on their way to the sender, the oldest first
}

type nak struct{ packet, at int }

// never is a packet behind all others.
const never = int(^uint(0) >> 1)

// run returns the time at which the sender knows that all have come.
func (x *transfer) run() int {
	idle := 0
	for t := 0; ; t++ {
		for len(x.naks) > 0 && x.naks[0].at <= t {
			n := x.naks[0]
			x.naks = x.naks[1:]
			stale := x.sentAt[n.packet] > t-x.Window
			if n.packet < x.next && !(x.Filter == Ideal && stale) {
				x.next, idle = n.packet, 0
			}
		}
		if x.next < x.Packets {
			x.sentAt[x.next] = t
			x.deliver(t, x.next)
			x.next++
			idle = 0
		} else if idle++; idle > x.Timeout {
			x.next, idle = x.least, 0
		}
		if x.least == x.Packets {
			return t + x.Window
		}
	}
}

// deliver sends copies of a packet. A copy that is behind answers with a NAK, once, or once for each window.
func (x *transfer) deliver(t, packet int) {
	for i, e := range x.expected {
		switch {
		case packet < e || x.random.Float64() < x.Loss:
		case packet == e:
			x.expected[i]++
			x.noted[i] = -x.Window - 1
		case x.noted[i] < 0 || !x.Once && t-x.noted[i] > x.Window:
			x.noted[i] = t
			if x.LostNAK == 0 || x.random.Float64() >= x.LostNAK {
				x.held = min(x.held, e)
			}
		}
	}
	least := never
	for _, e := range x.expected {
		least = min(least, e)
	}
	x.least = least
	if x.held <= least {
		x.naks = append(x.naks, nak{x.held, t + x.Window})
		x.held = never
	}
}
