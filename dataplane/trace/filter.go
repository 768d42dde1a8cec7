// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Filter says which packets are recorded: those that fit all that is given. The zero value
// takes every packet, with its headers alone.
type Filter struct {
	Groups  []netip.Addr // one of them is the packet's source or destination; none: any packet
	Members []netip.Addr // likewise
	Ports   []int        // ports by one of which the packet comes or leaves; none: any
	PSNs    *PSNRange    // nil: any
	Ops     []rocev2.Opcode
	Drops   bool // only packets that were not served, and copies that were not sent

	EnvelopePort uint16 // UDP port of envelopes
	Snap         int    // bytes of each packet that are recorded; 0: its headers. api.Trace has the bound
	Rate         int    // packets a second at most, of those that come, with all that they cause; 0: any number
}

// PSNRange is a circular range of PSNs, both ends included.
type PSNRange struct{ First, Last rocev2.PSN }

func (r *PSNRange) has(psn rocev2.PSN) bool {
	return (psn-r.First)&rocev2.PSNMask <= (r.Last-r.First)&rocev2.PSNMask
}

// compiled is a Filter as the worker asks it.
type compiled struct {
	Filter
	ops [256]bool
}

func compile(f *Filter) compiled {
	c := compiled{Filter: *f}
	for o := range c.ops {
		c.ops[o] = len(f.Ops) == 0 || slices.Contains(f.Ops, rocev2.Opcode(o))
	}
	return c
}

// ofGroup reports whether a packet is one of the groups' and has one of the opcodes.
func (c *compiled) ofGroup(h *Header) bool {
	switch {
	case len(c.Groups) > 0 && !slices.Contains(c.Groups, h.Src) && !slices.Contains(c.Groups, h.Dst):
		return false
	case h.IsRoCE:
		return c.ops[h.Op]
	}
	return len(c.Ops) == 0
}

// itself reports whether a packet of the groups fits what else is given. was is the PSN that it
// had before it was rewritten.
func (c *compiled) itself(h *Header, port int, was rocev2.PSN) bool {
	switch {
	case len(c.Ports) > 0 && !slices.Contains(c.Ports, port):
		return false
	case len(c.Members) > 0 && !slices.Contains(c.Members, h.Src) && !slices.Contains(c.Members, h.Dst):
		return false
	case c.PSNs != nil && !(h.IsRoCE && (c.PSNs.has(h.PSN) || c.PSNs.has(was))):
		return false
	}
	return true
}
