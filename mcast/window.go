// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// checkRequest returns the fatal NAK by which the switch itself has to answer a request
// that no group of receivers can execute, or that would touch memory outside the group's
// window, and 0 for any other request. The result depends on nothing but the packet, the
// registration and the target messages before the packet, so that a retransmission gets
// the same answer.
func (g *group) checkRequest(p *Packet, f rocev2.OpFlags) (rocev2.Syndrome, Reason) {
	switch {
	case f&(rocev2.OpSend|rocev2.OpWrite) == 0:
		return rocev2.SyndromeNAKInvalid, NotMulticastable
	case !lengthFits(f, p.Payload, g.fwd.pmtu):
		return rocev2.SyndromeNAKInvalid, BadLength
	case f&rocev2.OpRETH != 0 && g.fwd.targets != nil && p.RKey == g.fwd.targetKey:
		if code, why := g.checkTargeted(p); code != 0 {
			return code, why
		}
	case g.fwd.hasWindow && f&(rocev2.OpRETH|rocev2.OpIETH) != 0 && !g.inWindow(p, f):
		return rocev2.SyndromeNAKAccess, WindowViolation
	}
	if f&rocev2.OpWrite != 0 && !g.lengthAgrees(p, f) {
		return rocev2.SyndromeNAKInvalid, BadLength
	}
	return 0, None
}

// lengthFits does the length check of a responder (rxe_resp_check_length): FIRST and
// MIDDLE are full, LAST is not empty, nothing exceeds the path MTU.
func lengthFits(f rocev2.OpFlags, payload, pmtu uint16) bool {
	switch {
	case f&(rocev2.OpFirst|rocev2.OpMiddle) != 0:
		return payload == pmtu
	case f&rocev2.OpLast != 0:
		return payload > 0 && payload <= pmtu
	}
	return payload <= pmtu
}

// writeMessage is the source's newest message, if that is a WRITE of several packets, with
// the length from the RETH of its FIRST. A responder remembers the same.
type writeMessage struct {
	known  bool
	first  rocev2.PSN
	length uint32
}

// lengthAgrees reports whether the payload of a packet of a WRITE agrees with the length
// in RETH (R67): that of the same packet, or of the FIRST of the newest message. The
// receivers check older messages, and messages whose FIRST did not pass.
func (g *group) lengthAgrees(p *Packet, f rocev2.OpFlags) bool {
	if f&rocev2.OpRETH != 0 {
		if f&rocev2.OpEnd != 0 {
			return p.DMALen == uint32(p.Payload)
		}
		return p.DMALen > uint32(p.Payload)
	}
	psn := p.PSN & rocev2.PSNMask
	before := int64(psn.Sub(g.fwd.writeMessage.first))
	if !g.fwd.writeMessage.known || before <= 0 || g.fwd.nxt.Less(psn) {
		return true
	}
	left := int64(g.fwd.writeMessage.length) - before*int64(g.fwd.pmtu)
	if f&rocev2.OpEnd != 0 {
		return left == int64(p.Payload)
	}
	return left > int64(p.Payload)
}

// noteMessageStart notes the message that psn begins, or that a message may have begun
// unseen. The FIRST may pass again with another length: it was damaged before.
func (g *group) noteMessageStart(p *Packet, psn rocev2.PSN, f rocev2.OpFlags) {
	write := writeMessage{f&rocev2.OpWrite != 0 && f&rocev2.OpFirst != 0, psn, p.DMALen}
	switch {
	case psn.Less(g.fwd.nxt):
		if !g.fwd.writeMessage.known || psn != g.fwd.writeMessage.first || write == g.fwd.writeMessage {
			return // a later message may have begun unseen
		}
		if g.fwd.writeMessage = write; psn.Less(g.refusal.psn) {
			g.setRefusal(refusal{}) // it followed from the damaged FIRST
		}
	case f&rocev2.OpStart != 0:
		g.fwd.writeMessage = write
	default:
		g.fwd.writeMessage.known = false
	}
}

// inWindow checks a RETH or IETH against the group's window. A WRITE of no
// bytes touches no memory: its address and R_Key are not checked (C9-88).
func (g *group) inWindow(p *Packet, f rocev2.OpFlags) bool {
	if f&rocev2.OpIETH != 0 {
		return p.RKey == g.fwd.window.RKey && g.fwd.numWithoutWindow == 0
	}
	if p.DMALen == 0 {
		return true
	}
	// No sum here can overflow: off <= Len is known before it is subtracted.
	off := p.VA - g.fwd.window.Base
	return p.RKey == g.fwd.window.RKey && g.fwd.numWithoutWindow == 0 &&
		p.VA >= g.fwd.window.Base && off <= g.fwd.window.Len && uint64(p.DMALen) <= g.fwd.window.Len-off
}
