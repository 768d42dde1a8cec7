// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// messageKind is the kind of the message that the responder is receiving.
type messageKind uint8

const (
	noMessage messageKind = iota
	sendMessage
	writeMessage
)

// nakState records the negative acknowledgement sent for the expected PSN.
type nakState uint8

const (
	nakNone nakState = iota
	nakSequence
	nakRNR // rxe forgets that it has sent an RNR NAK
)

// responder is the receiving half of a QP.
type responder struct {
	cfg       *Config      `state:"constant"`
	traits    *traits      `state:"constant"`
	recvQueue ring[RecvWR] `state:"own(receives)"`

	ePSN rocev2.PSN `state:"encoded"` // expected (rxe resp.psn, qib r_psn)
	// ackPSN is rxe's resp.ack_psn: ePSN once a packet has been accepted, but 0 before,
	// so that an early duplicate is acknowledged with PSN 0xFFFFFF.
	ackPSN   rocev2.PSN `state:"encoded"`
	msn      rocev2.MSN `state:"encoded"` // messages completed
	nakState nakState   `state:"encoded"`

	inMessage messageKind `state:"encoded"`
	placed    int         `state:"encoded if x.inMessage == sendMessage"`  // sendMessage: bytes placed so far
	mr        *MR         `state:"own(region)"`                            // writeMessage: nil if length is 0
	mrOffset  int         `state:"encoded if x.inMessage == writeMessage"` // writeMessage: offset in mr of the next byte
	bytesLeft uint32      `state:"encoded if x.inMessage == writeMessage"` // writeMessage: bytes to come
	dmaLen    uint32      `state:"encoded if x.inMessage == writeMessage"` // writeMessage: DMALen

	ackTimer timer        `state:"encoded if x.traits.ackDelay > 0 else timer{}"` // armed: an ACK waits for more packets
	held     []heldPacket `state:"own(heldPackets)"`                              // packets behind a gap, by PSN modulo traits.keeps
	heldLen  int          `state:"own(heldPackets)"`                              // number of these
}

func (r *responder) init(cfg *Config) {
	r.cfg, r.traits = cfg, cfg.Personality.traits()
	r.recvQueue = newRing[RecvWR](cfg.RecvDepth)
	r.ePSN = cfg.RQPSN
}

func (r *responder) stop() {
	r.inMessage, r.mr, r.heldLen = noMessage, nil, 0
	r.ackTimer.stop()
	clear(r.held)
}

// handleRequest processes a request packet: rxe_resp.c:check_psn, qib_rc.c:qib_rc_rcv.
func (q *QP) handleRequest(now time.Duration, p *Packet, flags rocev2.OpFlags, out *Output) {
	r := &q.responder
	switch d := (p.PSN & rocev2.PSNMask).Sub(r.ePSN); {
	case d > 0:
		q.stats.OutOfSequence++
		if int(d) <= r.traits.keeps {
			r.keep(p)
		}
		q.reportGap(out)
		return
	case d < 0:
		q.duplicate(p, flags, out)
		return
	}
	if r.traits.forgetsNAKEarly {
		r.nakState = nakNone // before any check: a refused packet clears it too
	}
	q.execute(now, p, flags, out)
	if r.heldLen > 0 {
		q.executeHeld(now, out)
	}
}

// reportGap sends the sequence NAK of the expected PSN, once.
func (q *QP) reportGap(out *Output) {
	r := &q.responder
	if r.nakState == nakNone {
		r.nakState = nakSequence
		q.stats.NaksSent++
		q.respond(rocev2.SyndromeNAKSequence, r.ePSN, out)
	}
}

// duplicate answers a request below the expected PSN, without executing it again.
func (q *QP) duplicate(p *Packet, flags rocev2.OpFlags, out *Output) {
	r := &q.responder
	q.stats.Duplicates++
	if flags&(rocev2.OpSend|rocev2.OpWrite) == 0 {
		return // rxe: no responder resource for it, class D
	}
	ePSN := r.ePSN
	if r.traits.acksFromZero {
		ePSN = r.ackPSN
	}
	switch {
	case r.traits.acksEveryDuplicate:
		q.ack(ePSN.Prev(), out) // C9-105
	case p.AckReq:
		r.nakState = nakNone
		q.ack(ePSN.Prev(), out)
	}
}

// execute executes the expected packet.
func (q *QP) execute(now time.Duration, p *Packet, flags rocev2.OpFlags, out *Output) {
	r := &q.responder
	if !r.inSequence(flags) || flags&(rocev2.OpSend|rocev2.OpWrite) == 0 {
		q.refuse(p, rocev2.SyndromeNAKInvalid, RemInvReqErr, r.inMessage == sendMessage, out)
		return
	}
	// A SEND uses a receive from its first packet on, a WRITE with immediate
	// only for its last.
	needRecv := flags&(rocev2.OpSend|rocev2.OpImm) != 0
	if needRecv && r.recvQueue.count == 0 {
		q.stats.RNRsSent++
		if r.traits.silentAfterRNR {
			r.nakState = nakRNR
		}
		q.respond(rocev2.SyndromeRNR|rocev2.Syndrome(r.cfg.MinRNRTimer), p.PSN, out)
		return
	}
	syndrome, status := r.checkRequest(p, flags)
	if syndrome != rocev2.SyndromeACK {
		q.refuse(p, syndrome, status, needRecv, out)
		return
	}
	r.place(p, flags)
	inv := false
	if flags&rocev2.OpIETH != 0 {
		inv = r.cfg.Memory.invalidate(p.InvKey)
		if !inv && r.traits.unknownKeyFails { // class J: acknowledged, then error
			if p.AckReq {
				q.ack(p.PSN, out)
			}
			q.failReceive(RemInvReqErr, out)
			return
		}
	}
	q.accepted(now, p, flags, inv, out)
}

// inSequence reports whether the opcode may follow the previous one
// (rxe_resp.c:check_op_seq).
func (r *responder) inSequence(flags rocev2.OpFlags) bool {
	switch r.inMessage {
	case sendMessage:
		return flags&rocev2.OpSend != 0 && flags&(rocev2.OpMiddle|rocev2.OpLast) != 0
	case writeMessage:
		return flags&rocev2.OpWrite != 0 && flags&(rocev2.OpMiddle|rocev2.OpLast) != 0
	}
	return flags&rocev2.OpStart != 0
}

// checkRequest checks lengths (RC.md §3.10; rxe_resp.c:rxe_resp_check_length) and rights.
// At the start of a WRITE it stores RETH, and checks the R_Key for the whole of DMALen.
// SyndromeACK means that the packet may be placed.
func (r *responder) checkRequest(p *Packet, flags rocev2.OpFlags) (rocev2.Syndrome, Status) {
	n := p.PayloadLen()
	ok := true
	switch {
	case flags&rocev2.OpOnly != 0:
		ok = n <= r.cfg.PMTU
	case flags&rocev2.OpLast != 0:
		ok = n > 0 && n <= r.cfg.PMTU
	default:
		ok = n == r.cfg.PMTU
	}
	if !ok || flags&rocev2.OpRETH != 0 && uint64(p.DMALen) > MaxMessage {
		return rocev2.SyndromeNAKInvalid, RemInvReqErr
	}
	if flags&rocev2.OpSend != 0 {
		if flags&rocev2.OpStart != 0 {
			r.placed = 0
		}
		if n > r.recvQueue.at(0).length()-r.placed {
			return r.traits.tooLongSyndrome, r.traits.tooLongStatus
		}
		return rocev2.SyndromeACK, Success
	}
	return r.checkWrite(p, flags)
}

// checkWrite is the part of checkRequest for an RDMA WRITE (rxe_resp.c:check_rkey).
func (r *responder) checkWrite(p *Packet, flags rocev2.OpFlags) (rocev2.Syndrome, Status) {
	if flags&rocev2.OpRETH != 0 {
		r.dmaLen, r.bytesLeft, r.mr, r.mrOffset = p.DMALen, p.DMALen, nil, 0
		if p.DMALen > 0 { // C9-88: with length 0, R_Key and VA mean nothing
			checked := p.DMALen
			if r.traits.checksWritesByPart {
				checked = min(checked, uint32(p.PayloadLen()))
			}
			if r.mr = r.cfg.Memory.writable(p.RKey, p.VA, checked); r.mr != nil {
				r.mrOffset = int(p.VA - r.mr.IOVA)
			}
		}
	}
	n := uint32(p.PayloadLen())
	if r.dmaLen > 0 && (r.mr == nil || !r.mr.valid || r.traits.checksWritesByPart && int(n) > r.mr.length-r.mrOffset) {
		return rocev2.SyndromeNAKAccess, RemAccessErr
	}
	if n > r.bytesLeft || flags&rocev2.OpEnd != 0 && n != r.bytesLeft {
		return rocev2.SyndromeNAKInvalid, RemInvReqErr
	}
	return rocev2.SyndromeACK, Success
}

// place copies the payload of a checked packet to its destination. Without bytes it only
// counts them.
func (r *responder) place(p *Packet, flags rocev2.OpFlags) {
	n := p.PayloadLen()
	switch {
	case n == 0:
	case flags&rocev2.OpSend != 0:
		if buf := r.recvQueue.at(0).Buf; buf != nil {
			copy(buf[r.placed:], p.Payload)
		}
		r.placed += n
	default:
		if r.mr.buf != nil {
			copy(r.mr.buf[r.mrOffset:], p.Payload)
		}
		r.mrOffset += n
		r.bytesLeft -= uint32(n)
	}
}

// accepted advances past the expected packet, which has been placed, completes the
// receive that ends with it, and acknowledges the packet if AckReq is set, perhaps later
// within a message. inv: an R_Key was invalidated.
func (q *QP) accepted(now time.Duration, p *Packet, flags rocev2.OpFlags, inv bool, out *Output) {
	r := &q.responder
	q.stats.PacketsReceived++
	q.stats.BytesReceived += uint64(p.PayloadLen())
	r.ePSN = r.ePSN.Next()
	r.ackPSN = r.ePSN
	r.nakState = nakNone
	switch {
	case flags&rocev2.OpEnd != 0:
		q.stats.Messages++
		r.msn = r.msn.Add(1)
		if flags&(rocev2.OpSend|rocev2.OpImm) != 0 {
			c := Completion{ID: r.recvQueue.at(0).ID, Op: WCRecv, Bytes: r.placed, Imm: p.Imm, HasImm: flags&rocev2.OpImm != 0, Solicited: p.Solicited}
			if flags&rocev2.OpWrite != 0 {
				c.Op, c.Bytes = WCRecvRDMAWithImm, int(r.dmaLen)
			}
			if inv {
				c.InvKey, c.HasInv = p.InvKey, true
			}
			out.Completions = append(out.Completions, c)
			r.recvQueue.pop()
		}
		r.inMessage, r.mr = noMessage, nil
	case flags&rocev2.OpSend != 0:
		r.inMessage = sendMessage
	default:
		r.inMessage = writeMessage
	}
	switch {
	case !p.AckReq:
	case r.traits.ackDelay == 0 || flags&rocev2.OpEnd != 0:
		q.ack(p.PSN, out)
	case !r.ackTimer.armed:
		r.ackTimer.arm(now + r.traits.ackDelay)
	}
}

// refuse answers with a fatal NAK and puts the QP into the error state, in which it sends
// nothing more (rxe_resp.c:do_class_ac_error). If the packet holds a receive, that
// receive completes with status; the others are flushed.
func (q *QP) refuse(p *Packet, s rocev2.Syndrome, status Status, holdsRecv bool, out *Output) {
	q.stats.FatalNaksSent++
	q.respond(s, p.PSN, out)
	if holdsRecv {
		q.failReceive(status, out)
	} else {
		q.Fail(out)
	}
}

// failReceive completes the oldest receive with status and puts the QP into error.
func (q *QP) failReceive(status Status, out *Output) {
	r := &q.responder
	if r.recvQueue.count > 0 {
		out.Completions = append(out.Completions, Completion{ID: r.recvQueue.at(0).ID, Op: WCRecv, Status: status})
		r.recvQueue.pop()
	}
	q.Fail(out)
}

// ack sends a positive acknowledgement of psn.
func (q *QP) ack(psn rocev2.PSN, out *Output) {
	s := q.responder.traits.ackSyndrome
	if q.cfg.Credits || q.responder.traits.credits {
		s = rocev2.SyndromeCredits(q.responder.recvQueue.count)
	}
	q.stats.AcksSent++
	q.respond(s, psn, out)
}

// respond sends a response, which tells of all packets before the expected one.
func (q *QP) respond(s rocev2.Syndrome, psn rocev2.PSN, out *Output) {
	q.responder.ackTimer.stop()
	out.Packets = append(out.Packets, Packet{Op: rocev2.Acknowledge, DestQP: q.cfg.DestQPN, PSN: psn & rocev2.PSNMask, Syndrome: s, MSN: q.responder.msn})
}
