// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// refuse says with which fatal NAK, if any, the switch itself has to answer a
// request that no group of receivers can execute, or that would touch memory
// outside the group's window. It looks at nothing but the packet, what was
// registered and what updates before it said, so that a retransmission gets the
// same answer.
func (g *group) refuse(p *Packet, f rocev2.OpFlags) (rocev2.Syndrome, Reason) {
	switch {
	case f&(rocev2.OpSend|rocev2.OpWrite) == 0:
		return rocev2.SyndromeNAKInvalid, NotMulticastable
	case !fits(f, p.Payload, g.pmtu):
		return rocev2.SyndromeNAKInvalid, BadLength
	case f&rocev2.OpRETH != 0 && g.targets != nil && p.RKey == g.targetKey:
		if code, why := g.refuseTargeted(p); code != 0 {
			return code, why
		}
	case g.windowed && f&(rocev2.OpRETH|rocev2.OpIETH) != 0 && !g.inWindow(p, f):
		return rocev2.SyndromeNAKAccess, WindowViolation
	}
	if f&rocev2.OpWrite != 0 && !g.agrees(p, f) {
		return rocev2.SyndromeNAKInvalid, BadLength
	}
	return 0, None
}

// fits is the length check of a responder (rxe_resp_check_length): FIRST and
// MIDDLE are full, LAST is not empty, nothing exceeds the path MTU.
func fits(f rocev2.OpFlags, payload, pmtu uint16) bool {
	switch {
	case f&(rocev2.OpFirst|rocev2.OpMiddle) != 0:
		return payload == pmtu
	case f&rocev2.OpLast != 0:
		return payload > 0 && payload <= pmtu
	}
	return payload <= pmtu
}

// writing is the source's newest message, if it is a WRITE of several packets: how
// long it says to be, in RETH of its FIRST. It is what a responder remembers.
type writing struct {
	known bool
	first rocev2.PSN
	bytes uint32
}

// agrees says whether a packet of a WRITE has as many bytes as RETH says (R67): in
// the same packet, or in the FIRST of the newest message. Older messages, and one
// whose FIRST did not pass, are left to the receivers.
func (g *group) agrees(p *Packet, f rocev2.OpFlags) bool {
	if f&rocev2.OpRETH != 0 {
		if f&rocev2.OpEnd != 0 {
			return p.DMALen == uint32(p.Payload)
		}
		return p.DMALen > uint32(p.Payload)
	}
	psn := p.PSN & rocev2.PSNMask
	before := int64(psn.Sub(g.write.first))
	if !g.write.known || before <= 0 || g.hi.Less(psn) {
		return true
	}
	left := int64(g.write.bytes) - before*int64(g.pmtu)
	if f&rocev2.OpEnd != 0 {
		return left == int64(p.Payload)
	}
	return left > int64(p.Payload)
}

// begins notes the message that psn begins, or that one may have begun unseen. A
// FIRST that passes again may have been damaged before.
func (g *group) begins(p *Packet, psn rocev2.PSN, f rocev2.OpFlags) {
	write := writing{f&rocev2.OpWrite != 0 && f&rocev2.OpFirst != 0, psn, p.DMALen}
	switch {
	case psn.Less(g.hi):
		if !g.write.known || psn != g.write.first || write == g.write {
			return // a later message may have begun unseen
		}
		if g.write = write; psn.Less(g.refused.psn) {
			g.refused = refusal{} // by what it seemed to say
		}
	case f&rocev2.OpStart != 0:
		g.write = write
	default:
		g.write.known = false
	}
}

// inWindow checks a RETH or IETH against the group's window. A WRITE of no
// bytes touches no memory: its address and R_Key are not checked (C9-88).
func (g *group) inWindow(p *Packet, f rocev2.OpFlags) bool {
	if f&rocev2.OpIETH != 0 {
		return p.RKey == g.window.RKey && g.nowin == 0
	}
	if p.DMALen == 0 {
		return true
	}
	// No sum here can overflow: off <= Len is known before it is subtracted.
	off := p.VA - g.window.Base
	return p.RKey == g.window.RKey && g.nowin == 0 &&
		p.VA >= g.window.Base && off <= g.window.Len && uint64(p.DMALen) <= g.window.Len-off
}
