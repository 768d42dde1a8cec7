// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// forwarding is the part of a group that makes copies of the source's packets: which PSN is
// new, and what differs from member to member. Every PSN below nxt went to every receiver
// that lacked it, or was lost before the switch.
type forwarding struct {
	nxt              rocev2.PSN   `state:"encoded"` // the highest PSN forwarded, plus 1
	pmtu             uint16       `state:"constant"`
	midMessage       bool         `state:"encoded"`  // the message of nxt-1 is not complete
	hasWindow        bool         `state:"constant"` // window is set
	numWithoutWindow int32        `state:"encoded"`  // receiving connected legs whose member has no window
	targetKey        uint32       `state:"constant"` // the R_Key of target messages
	targets          *targets     `state:"encoded"`  // nil unless there is a targetKey
	window           Window       `state:"constant"` // what the source's WRITEs address
	writeMessage     writeMessage `state:"encoded"`
	limit            rocev2.PSN   `state:"own(limit)"` // data from here on waits until newer positions are stored; unlimited: never
}

// forward makes the copies of p for the legs that lack it.
func (g *group) forward(now time.Duration, p *Packet, psn rocev2.PSN, f rocev2.OpFlags, out *Output) {
	how := g.rewriteOf(p, f)
	again := psn.Less(g.fwd.nxt)
	if again && psn == g.rtt.psn {
		g.rtt.pending = false // an ACK may be of either passage
	}
	fresh := again && g.repair.store != nil && g.repair.store.find(psn) == nil
	if g.repair.store != nil && !g.is(noReceivers) && g.agg.acked.Less(psn) && !g.repair.store.retain(p, psn, g.fwd.nxt, g.agg.acked, how, out) {
		g.counters.rare().NotRetained++
	}
	n, served, drains := len(out.Copies), 0, !again && g.isDraining(now)
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			continue
		}
		d := psn.Sub(b.acked)
		if d <= 0 {
			continue
		}
		ask := again && d == 1 && g.live.period != 0 // whoever decides on silence has asked (R57)
		if g.repair.store != nil && (b.flags&recovering != 0 || again && g.repair.store.bytes != 0) {
			var yes, probes bool
			if b.flags&isConnected != 0 {
				yes, probes = g.takesFromSource(now, i, psn)
			} else {
				yes, probes = g.switchTakes(now, i, psn, again, fresh)
			}
			if !yes {
				continue
			}
			ask = ask || probes
		} else if g.repair.path == fastPath {
			served++ // the fast path has sent it
			continue
		} else if drains && g.deferLeg(i, psn) {
			continue
		}
		// The copy is made in place: to move it costs as much as to make it.
		out.Copies = append(out.Copies, Copy{Group: g.id, Leg: LegID(i), Frame: p.Frame, PSN: (psn + rocev2.PSN(b.delta)) & rocev2.PSNMask})
		c := &out.Copies[len(out.Copies)-1]
		if how == rewriteByWindow && b.flags&isConnected != 0 { // the usual WRITE, without a call
			l := &g.legs[i]
			c.Flags, c.VA, c.RKey = SetRETH, l.base+(p.VA-g.fwd.window.Base), l.rkey
		} else if how != rewriteNone && b.flags&isConnected != 0 && !g.rewriteCopy(c, how, p.VA, psn) {
			out.Copies = out.Copies[:len(out.Copies)-1]
			continue
		}
		if ask && !p.AckReq {
			c.Flags |= SetAckReq
		}
		if again && g.policy.quorum != 0 {
			g.activity[i].noteRepeat(psn)
		}
		if d == 1 && b.pending != sevNone && b.pending != sevFatal {
			g.setPending(b, sevNone, 0) // this is the packet that the NAK is for
			g.activity[i].recovery.lossAt = now
			if g.repair.store != nil {
				g.armProbe(now, i)
			}
		}
	}
	if g.repair.asks(psn) && !p.AckReq {
		g.askMembers(out.Copies[n:])
	}
	if served != 0 {
		g.extra.offload.copies += uint64(served)
	}
	g.counters.Copies += uint64(len(out.Copies) - n + served)
}

// askMembers sets AckReq in the copies that go to members; other switches ask their own (R112).
func (g *group) askMembers(copies []Copy) {
	for i := range copies {
		if c := &copies[i]; g.acks[c.Leg].flags&isConnected != 0 {
			c.Flags |= SetAckReq
		}
	}
}

// noteForwarded records that psn went out to the receivers.
func (g *group) noteForwarded(psn rocev2.PSN, f rocev2.OpFlags) {
	ends := f&rocev2.OpEnd != 0
	if psn != g.fwd.nxt {
		g.numbering.noteGap(psn, g.fwd.nxt)
		g.skipRetained()
	}
	switch d := psn.Sub(g.fwd.nxt); {
	case d >= 0:
		g.setNxt(psn.Next(), g.fwd.limit)
		g.fwd.midMessage = !ends
		if ends {
			g.agg.messages.addEnd(psn)
		}
	default:
		g.live.sourceRewound = true
		if d == -1 {
			g.fwd.midMessage = !ends
		}
		g.correctMessagesBefore(psn, g.agg.messages.correctEnd(psn, ends))
	}
}

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
	known  bool       `state:"encoded"`
	first  rocev2.PSN `state:"encoded if x.known"`
	length uint32     `state:"encoded if x.known"`
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
			g.setRefusal(refusal{}) // the damaged FIRST was the reason for the refusal
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

// rewriteKind is the part of a packet that differs from member to member.
type rewriteKind uint8

const (
	rewriteNone     rewriteKind = iota
	rewriteByWindow             // a WRITE into the group's window (R27)
	rewriteByKey                // the R_Key of a SEND with invalidate (R27)
	rewriteByTarget             // a WRITE to the target that the last target message names (R41)
	rewriteEmpty                // a target message itself: receivers get a WRITE of no bytes
)

// rewriteOf returns the part of p that differs from member to member. Copies to other
// switches are not rewritten.
func (g *group) rewriteOf(p *Packet, f rocev2.OpFlags) rewriteKind {
	switch {
	case f&rocev2.OpRETH != 0 && p.DMALen != 0:
		switch {
		case g.fwd.targets != nil && p.RKey == g.fwd.targetKey && p.VA == targetMessageVA:
			return rewriteEmpty
		case g.fwd.targets != nil && p.RKey == g.fwd.targetKey:
			return rewriteByTarget
		case g.fwd.hasWindow:
			return rewriteByWindow
		}
	case f&rocev2.OpIETH != 0 && g.fwd.hasWindow:
		return rewriteByKey
	}
	return rewriteNone
}

// rewriteCopy rewrites c for its member, as far as forward has not. It returns false if no
// target message has named that member's memory: then the copy must not be sent.
func (g *group) rewriteCopy(c *Copy, how rewriteKind, va uint64, psn rocev2.PSN) bool {
	switch how {
	case rewriteByWindow:
		l := &g.legs[c.Leg]
		c.Flags, c.VA, c.RKey = SetRETH, l.base+(va-g.fwd.window.Base), l.rkey
	case rewriteByKey:
		c.Flags, c.RKey = SetIETH, g.legs[c.Leg].rkey
	case rewriteByTarget:
		t := g.fwd.targets.find(int(c.Leg), psn)
		c.Flags, c.VA, c.RKey = SetRETH, t.va+va, t.rkey
		return t.set
	case rewriteEmpty:
		c.Flags = EmptyWrite
	}
	return true
}

// IsTargetMessage reports whether p, a packet for the group, is a target message, whose
// Targets the driver has to read from the payload before Input.
func (v Group) IsTargetMessage(p *Packet) bool {
	g := v.g
	return g != nil && g.isTargetMessage(p)
}

func (g *group) isTargetMessage(p *Packet) bool {
	return g.fwd.targets != nil && p.VA == targetMessageVA && p.RKey == g.fwd.targetKey && p.DMALen != 0 && p.Op.Is(rocev2.OpRETH)
}

// checkTargeted is checkRequest for a packet with the target key.
func (g *group) checkTargeted(p *Packet) (rocev2.Syndrome, Reason) {
	switch {
	case p.DMALen == 0:
		return 0, None
	case p.VA == targetMessageVA:
		// One PSN, and no immediate data that would consume a receive: receivers
		// execute a WRITE of no bytes in its place.
		if p.Op != rocev2.WriteOnly || len(p.Targets) == 0 {
			return rocev2.SyndromeNAKInvalid, BadTargetMessage
		}
	default:
		end := p.VA + uint64(p.DMALen)
		for i := range g.acks {
			if g.acks[i].flags&(isReceiver|isConnected) != isReceiver|isConnected {
				continue
			}
			t := g.fwd.targets.find(i, p.PSN&rocev2.PSNMask)
			if !t.set || end < p.VA || t.va+end < t.va {
				return rocev2.SyndromeNAKAccess, WindowViolation
			}
		}
	}
	return 0, None
}

// noteTargets stores the targets that a target message at psn names. It returns false if
// there is no room, and then nothing has changed.
func (g *group) noteTargets(psn rocev2.PSN, records []Target) bool {
	u := g.fwd.targets.insert(psn)
	if u == nil {
		return false
	}
	for _, t := range records {
		if int(t.Member) < len(g.members) && g.members[t.Member].live {
			u.legs[g.members[t.Member].leg] = target{va: t.VA, rkey: t.RKey, set: true}
		}
	}
	// A WRITE may have been refused for want of this message, which was lost before the
	// switch the first time. The WRITE is checked again when it comes again.
	if g.is(refused) && psn.Less(g.refusal.psn) {
		g.setRefusal(refusal{})
	}
	return true
}
