// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/internal/statecode"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The encoding of rings, of which only the entries in use count, and of tables that grow
// when they are written to.

func (c *stateCode) messageRing(m *messages) {
	n := c.Len(int(m.count), maxEnds)
	if !c.Reading {
		for i := range m.count {
			c.Bytes = m.at(i).appendState(c, c.Bytes)
		}
		return
	}
	m.first, m.count = 0, 0
	for i := range uint16(n) {
		m.grow()
		m.count++
		m.at(i).readState(c)
	}
}

func (c *stateCode) targetRing(t *targets) {
	n := c.Len(int(t.count), maxTargetMessages)
	if !c.Reading {
		for i := range t.count {
			c.Bytes = t.at(i).appendState(c, c.Bytes)
		}
		return
	}
	t.first, t.count = 0, uint32(n)
	for i := range t.count {
		t.at(i).readState(c)
	}
}

// departureRing encodes the departures that still have an effect.
func (c *stateCode) departureRing(d *departures) {
	if !c.Reading {
		for i := range d.count {
			if e := d.at(i); e.endsAt(&c.sw.ports) > c.Now {
				c.Present(true)
				c.Bytes = e.appendState(c, c.Bytes)
			}
		}
		c.Present(false)
		return
	}
	for d.first, d.count = 0, 0; c.Present(false); d.count++ {
		if d.count == maxDepartures {
			c.Malformed = true
			return
		}
		d.at(d.count).readState(c)
	}
}

// frames encodes the frames of a store for what is in flight.
func (c *stateCode) frames(s *store) {
	n := c.Len(min(max(int(c.g.fwd.nxt.Sub(s.first)), 0), s.size()), s.size())
	if c.Reading {
		clear(s.ring)
		s.bytes = 0
		s.reach(n)
	}
	for i := range int32(n) {
		psn := s.first.Add(i)
		e := s.find(psn)
		if !c.Present(e != nil) {
			continue
		}
		if !c.Reading {
			c.Bytes = e.appendState(c, c.Bytes)
			continue
		}
		e = s.at(psn)
		e.readState(c)
		s.bytes += int64(e.bytes)
		c.sw.repair.used += int64(e.bytes)
	}
}

// heldPackets encodes the packets that a group holds. What they have in common is derived.
func (c *stateCode) heldPackets(h *held) {
	n := c.Len(len(h.packets)-h.first, c.g.repair.store.size())
	if c.Reading {
		*h = held{packets: make([]Packet, n), lost: h.lost}
	}
	for i := range h.packets[h.first:] {
		p := &h.packets[h.first+i]
		if !c.Reading {
			c.Bytes = p.appendState(c, c.Bytes)
			continue
		}
		p.readState(c)
		c.g.repair.store.countHeld(int64(p.RetainBytes))
	}
}

// keys encodes the addresses of a departure.
func (c *stateCode) keys(d *departure) {
	for _, k := range []*rocev2.AddrKey{&d.group, &d.member} {
		statecode.Uint(&c.Code, &k.Hi)
		statecode.Uint(&c.Code, &k.Lo)
	}
}

// needed encodes what the neighbours need, of forwarded legs alone.
func (c *stateCode) needed(e *edgePositions) {
	e.needed = byLeg(c, e.needed)
	for _, l := range c.g.forwardedLegs() {
		statecode.Uint(&c.Code, &e.needed[l])
	}
}

// said encodes what switches below have said, if a question is passed on.
func (c *stateCode) said(y *relay) {
	if y.member == none {
		y.said = nil
		return
	}
	y.said = byLeg(c, y.said)
	for _, l := range c.g.forwardedLegs() {
		if c.Reading {
			y.said[l].readState(c)
		} else {
			c.Bytes = y.said[l].appendState(c, c.Bytes)
		}
	}
}

// byLeg returns a table with an entry for each leg: those of s, unless they are to be read.
func byLeg[T token.Member | edgeBound](c *stateCode, s []T) []T {
	if c.Reading {
		s = s[:0]
	}
	return append(s, make([]T, len(c.g.legs)-len(s))...)
}
