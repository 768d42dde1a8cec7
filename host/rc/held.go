// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"time"

	"github.com/gleam-rdma/gleam/internal/statecode"
	"github.com/gleam-rdma/gleam/rocev2"
)

// heldPacket is a packet behind a gap.
type heldPacket struct {
	packet Packet
	buf    []byte // memory of its payload, which the next one in its place uses too
	full   bool
}

// heldAt returns the place of a PSN. All that is held lies within traits.keeps packets behind
// the expected PSN, so no two of them have the same place.
func (r *responder) heldAt(psn rocev2.PSN) *heldPacket { return &r.held[int(psn)%r.traits.keeps] }

// keep holds a packet behind a gap.
func (r *responder) keep(p *Packet) {
	if r.held == nil {
		r.held = make([]heldPacket, r.traits.keeps)
	}
	h := r.heldAt(p.PSN & rocev2.PSNMask)
	if h.full {
		return
	}
	h.full, h.packet = true, *p
	if p.Payload != nil {
		h.buf = append(h.buf[:0], p.Payload...)
		h.packet.Payload = h.buf
	}
	h.packet.PSN &= rocev2.PSNMask
	r.heldLen++
}

// executeHeld executes what is held from the expected PSN on. The next gap is reported.
func (q *QP) executeHeld(now time.Duration, out *Output) {
	r := &q.responder
	for q.state == RTS && r.heldLen > 0 {
		h := r.heldAt(r.ePSN)
		if !h.full || h.packet.PSN != r.ePSN {
			q.reportGap(out)
			return
		}
		h.full = false
		r.heldLen--
		q.execute(now, &h.packet, h.packet.Op.Flags(), out)
	}
}

// heldPackets encodes what is held, whole, in the order of PSNs.
func (c *stateCode) heldPackets(r *responder) {
	if r.traits.keeps == 0 {
		return
	}
	n := c.Len(r.heldLen, r.traits.keeps)
	if c.Reading {
		clear(r.held)
		r.heldLen = 0
		for range n {
			var p Packet
			c.packet(&p)
			r.keep(&p)
		}
		return
	}
	for i := range r.traits.keeps {
		if n > 0 {
			if h := r.heldAt(r.ePSN.Add(int32(i))); h.full {
				c.packet(&h.packet)
			}
		}
	}
}

// packet encodes a request.
func (c *stateCode) packet(p *Packet) {
	statecode.Uint(&c.Code, (*uint8)(&p.Op))
	flags := statecode.Bit(p.AckReq) | statecode.Bit(p.Solicited)<<1 | statecode.Bit(p.Payload != nil)<<2
	statecode.Uint(&c.Code, &flags)
	p.AckReq, p.Solicited = flags&1 != 0, flags&2 != 0
	statecode.Uint(&c.Code, (*uint32)(&p.PSN))
	statecode.Uint(&c.Code, &p.DMALen)
	statecode.Uint(&c.Code, &p.RKey)
	statecode.Uint(&c.Code, &p.VA)
	statecode.Uint(&c.Code, &p.Imm)
	statecode.Uint(&c.Code, &p.InvKey)
	n := c.Len(p.PayloadLen(), MaxMessage)
	if c.Reading && flags&4 != 0 && n > len(c.Rest()) {
		c.Malformed, n = true, 0
	}
	if flags&4 == 0 {
		p.Length = n
		return
	}
	if c.Reading {
		p.Payload = make([]byte, n)
	}
	for i := range p.Payload {
		c.byte(&p.Payload[i])
	}
}

func (c *stateCode) byte(b *byte) {
	if c.Reading {
		statecode.ReadByte(&c.Code, b)
	} else {
		c.Bytes = statecode.AppendByte(c.Bytes, *b)
	}
}
