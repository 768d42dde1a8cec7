// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// slot returns the slot of psn, and its bytes.
func (g *Group) slot(psn rocev2.PSN) (x *slotState, data []byte) {
	off := (g.ringFirst + int(uint32(psn)&uint32(g.slots-1))) * g.slotBytes
	return g.ring.slot(off), g.ring[off+slotHeader : off+g.slotBytes]
}

// headerOf is the header of a valid slot.
func (g *Group) headerOf(psn rocev2.PSN, n int) uint64 {
	return uint64(psn&psnMask) | uint64(n)<<slotLen | g.incarnation<<slotIncarnation | slotValid
}

// View returns the packet with psn as it came, from its Ethernet header on, and, if it has
// AckReq and came the fast way, when that was on CLOCK_MONOTONIC. It returns false if the
// packet is not stored, or not yet: it is for some µs after State.Hi has passed it. The
// bytes stay while the limit has not passed psn by more than the ring's size.
func (g *Group) View(psn rocev2.PSN) (frame []byte, at time.Duration, ok bool) {
	x, data := g.slot(psn)
	word := x.header.Load()
	n := int(word >> slotLen & 0xFFFF)
	if word != g.headerOf(psn, n) || n > len(data) {
		return nil, 0, false
	}
	return data[:n], time.Duration(x.time.Load()), true
}

// Stored is View for a packet that has been there, and that the limit has kept, whatever
// Set has changed of the group since.
func (g *Group) Stored(psn rocev2.PSN) (frame []byte, ok bool) {
	x, data := g.slot(psn)
	word := x.header.Load()
	n := int(word >> slotLen & 0xFFFF)
	if word&(slotValid|psnMask) != slotValid|uint64(psn&psnMask) || n > len(data) {
		return nil, false
	}
	return data[:n], true
}

// Keep copies the packet with psn to dst, as Stored, if the slot still has it then: the limit may have been moved
// past it.
func (g *Group) Keep(psn rocev2.PSN, dst []byte) (frame []byte, ok bool) {
	frame, ok = g.Stored(psn)
	if !ok || len(frame) > len(dst) {
		return nil, false
	}
	x, _ := g.slot(psn)
	word := x.header.Load()
	n := copy(dst, frame)
	return dst[:n], word&psnMask == uint64(psn&psnMask) && int(word>>slotLen&0xFFFF) == n && x.has(word)
}

// has reports whether the header is still word, after what it is of was read.
func (x *slotState) has(word uint64) bool {
	return word&slotValid != 0 && x.header.CompareAndSwap(word, word) // a load might be made before those of the bytes
}

// Passed is a packet that all receivers have acknowledged, in the bytes that KeepPassed was given.
type Passed struct {
	Frame []byte
	At    time.Duration // time at which it came, as of View
	Ends  uint32        // packets since the grant that ended a message, up to it, modulo 2^24
}

// KeepPassed copies the packet with psn to dst, as View has it. It returns false if the slot has it no more, since the
// programs have moved the limit and forwarded another one.
func (g *Group) KeepPassed(psn rocev2.PSN, dst []byte) (p Passed, ok bool) {
	x, data := g.slot(psn)
	word := x.header.Load()
	n := int(word >> slotLen & 0xFFFF)
	if word != g.headerOf(psn, n) || n > len(data) || n > len(dst) {
		return p, false
	}
	p = Passed{Frame: dst[:copy(dst, data[:n])], At: time.Duration(x.time.Load()), Ends: uint32(x.ends.Load() & psnMask)}
	return p, x.has(word)
}

// Ends returns Passed.Ends of a packet that View has.
func (g *Group) Ends(psn rocev2.PSN) uint32 {
	x, _ := g.slot(psn)
	return uint32(x.ends.Load() & psnMask)
}

// Touch brings the headers of n packets from psn on into this CPU's cache.
func (g *Group) Touch(psn rocev2.PSN, n int) {
	sum := byte(0)
	for i := range n {
		_, data := g.slot(psn.Add(int32(i)))
		sum ^= data[0] ^ data[cacheLine]
	}
	g.touched = sum
}

const cacheLine = 64

// SlotBytes returns the memory that a packet takes in the ring.
func (g *Group) SlotBytes() int { return g.slotBytes }

// Load copies the packet with psn as it came, from its Ethernet header on, to dst, and
// returns its length and, if it has AckReq and came the fast way, when that was on
// CLOCK_MONOTONIC. It returns false if the packet is not stored, or not yet: it is for some
// µs after State.Hi has passed it.
func (g *Group) Load(psn rocev2.PSN, dst []byte) (n int, at time.Duration, ok bool) {
	if g.slots == 0 {
		return 0, 0, false
	}
	x, data := g.slot(psn)
	word := x.header.Load()
	n = int(word >> slotLen & 0xFFFF)
	if word != g.headerOf(psn, n) || n > len(data) || n > len(dst) {
		return 0, 0, false
	}
	at = time.Duration(x.time.Load())
	copy(dst, data[:n])
	return n, at, x.header.Load() == word
}

// Store stores a packet that user space has forwarded: one before State.Hi, or any while
// the group is not FAST. It returns false if it does not fit.
func (g *Group) Store(psn rocev2.PSN, frame []byte) bool {
	if g.slots == 0 {
		return false
	}
	x, data := g.slot(psn)
	if len(frame) == 0 || len(frame) > len(data) {
		return false
	}
	word := g.headerOf(psn, len(frame))
	x.header.Store(word &^ slotValid)
	x.time.Store(0)
	x.ends.Store(0)
	copy(data, frame)
	x.header.Store(word)
	return true
}
