// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import "github.com/gleam-rdma/gleam/rocev2"

// Layout of the words of fast.h.
const (
	psnMask = rocev2.PSNMask

	wordEnds        = 24 // 24 bits
	wordOpen        = 1 << 48
	wordFast        = 1 << 49
	wordIncarnation = 50 // 14 bits
	incarnationMask = 1<<14 - 1

	limitMoves = 1 << 24
	limitCount = 1 << 25 // 39 bits

	gateCopies = 24 // 39 bits
	gateShut   = 1 << 63
	copiesMask = 1<<39 - 1

	slotLen         = 24 // 16 bits
	slotIncarnation = 40
	slotValid       = 1 << 63
)

// State is the word of a group.
type State struct {
	Hi   rocev2.PSN // the next PSN to forward; all before it are
	Ends uint32     // packets since the grant that ended a message, modulo 2^24
	Open bool       // the packet before Hi did not end one
	Fast bool
}

func stateOf(word uint64) State {
	return State{
		Hi: rocev2.PSN(word & psnMask), Ends: uint32(word >> wordEnds & psnMask),
		Open: word&wordOpen != 0, Fast: word&wordFast != 0,
	}
}

// Gate is the word of a leg.
type Gate struct {
	Next   rocev2.PSN // the next PSN to copy; all before it are, or were by user space
	Copies uint64     // modulo 2^39
	Shut   bool       // no packet is copied
}

func gateOf(word uint64) Gate {
	return Gate{Next: rocev2.PSN(word & psnMask), Copies: word >> gateCopies & copiesMask, Shut: word&gateShut != 0}
}

func (g Gate) word() uint64 {
	w := uint64(g.Next&psnMask) | g.Copies&copiesMask<<gateCopies
	if g.Shut {
		w |= gateShut
	}
	return w
}
