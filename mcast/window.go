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
		return g.refuseTargeted(p)
	case g.windowed && f&(rocev2.OpRETH|rocev2.OpIETH) != 0 && !g.inWindow(p, f):
		return rocev2.SyndromeNAKAccess, WindowViolation
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
