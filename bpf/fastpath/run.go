// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/rocev2"
)

func (g *Group) state() *groupState { return &g.maps.states[g.index] }

func (g *Group) gate(leg int) *legState { return &g.maps.legs[g.legs[leg]] }

// Grant makes the group FAST: the programs forward from hi on, up to limit. Everything
// before hi has left; open says that the packet before hi ended no message.
func (g *Group) Grant(hi rocev2.PSN, open bool, limit rocev2.PSN) {
	x := g.state()
	g.SetLimit(limit)
	word := x.word.Load()&(incarnationMask<<wordIncarnation) | uint64(hi&psnMask) | wordFast
	if open {
		word |= wordOpen
	}
	x.word.Store(word)
}

// Revoke takes FAST back and returns what has been forwarded until then. Packets before
// State.Hi may still be on their way to the ports, for 200 µs at most.
func (g *Group) Revoke() State {
	x := g.state()
	for {
		word := x.word.Load()
		if x.word.CompareAndSwap(word, word&^uint64(wordFast)) {
			return stateOf(word)
		}
	}
}

// State returns the group's state.
func (g *Group) State() State { return stateOf(g.state().word.Load()) }

// SetLimit sets the first PSN that is not forwarded. While the group is FAST it only grows. The programs do
// not move it then.
func (g *Group) SetLimit(psn rocev2.PSN) {
	x := &g.state().limit
	x.Store(limitAt(x.Load(), psn))
}

// limitAt is the next word of a limit, at psn.
func limitAt(word uint64, psn rocev2.PSN) uint64 {
	return word&^(limitMoves|psnMask) + limitCount | uint64(psn&psnMask)
}

// Payload returns the bytes of payload that the programs have ever forwarded in this place.
func (g *Group) Payload() uint64 { return g.state().bytes.Load() }

// Gate returns the state of a leg, by its index in GroupSpec.Legs.
func (g *Group) Gate(leg int) Gate { return gateOf(g.gate(leg).gate.Load()) }

// Shut ends the copies for a leg, and returns the state until then.
func (g *Group) Shut(leg int) Gate {
	x := &g.gate(leg).gate
	for {
		word := x.Load()
		if x.CompareAndSwap(word, word|gateShut) {
			return gateOf(word)
		}
	}
}

// Open lets a leg that is shut have copies from next on, all before which it has been sent.
// If next has been forwarded to the other legs already, it gets none: user space sends it
// what it lacks, and opens it again.
func (g *Group) Open(leg int, next rocev2.PSN) {
	x := &g.gate(leg).gate
	x.Store(x.Load()&(copiesMask<<gateCopies) | uint64(next&psnMask))
}

// SetPSNDelta sets what is added to the source's PSNs toward a leg that is shut.
func (g *Group) SetPSNDelta(leg int, delta rocev2.PSN) {
	g.gate(leg).psnDelta = uint32(delta & psnMask)
}

// counter is the key of r in the map of counters.
func (g *Group) counter(r Reason) uint32 { return uint32(g.index)*uint32(NumReasons) + uint32(r) }

// clearCounters makes the counters those of a new group.
func (g *Group) clearCounters() error {
	zero := make([]uint64, ebpf.MustPossibleCPU())
	for r := range NumReasons {
		if err := g.maps.maps[fastMapFastCounters].Put(g.counter(r), zero); err != nil {
			return fmt.Errorf("clear counter %s of the fast path: %w", r, err)
		}
	}
	return nil
}

// Counters returns how many packets to the group were left to user space.
func (g *Group) Counters() (c Counters, err error) {
	var perCPU []uint64
	for r := range c {
		if err := g.maps.maps[fastMapFastCounters].Lookup(g.counter(Reason(r)), &perCPU); err != nil {
			return c, fmt.Errorf("read counter %s of the fast path: %w", Reason(r), err)
		}
		for _, n := range perCPU {
			c[r] += n
		}
	}
	return c, nil
}
