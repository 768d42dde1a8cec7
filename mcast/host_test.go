// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/rocev2"

// The requester.

func (h *host) start() { h.transmitWindow(); h.arm() }

func (h *host) arm() {
	h.timer++
	g := h.timer
	h.n.after(h.n.timer, func() {
		if g == h.timer && !h.removed && h.una < len(h.ops) {
			h.tries++
			h.maxOutstanding = max(h.maxOutstanding, h.tries)
			if h.tries > 500 && h.n.givesUp(h) {
				return
			}
			h.nxt, h.restarted = h.una, true
			h.waves++
			h.transmitWindow()
			h.arm()
		}
	})
}

func (h *host) transmitWindow() {
	for !h.removed && h.nxt < len(h.ops) && h.nxt < h.una+h.maxUnacked {
		h.transmit(h.nxt)
		h.nxt++
		h.top = max(h.top, h.nxt)
	}
}

func (h *host) transmit(i int) {
	n := h.n
	op := h.ops[i]
	p := Packet{
		Group: groupIP, Src: h.ip, DestQP: groupQPN, Op: op, PSN: h.sqPSN.Add(int32(i)),
		AckReq: op.Is(rocev2.OpEnd) || i == h.una+h.maxUnacked-1, Payload: 10, Frame: Handle(len(n.frames)),
	}
	if op.Is(rocev2.OpFirst | rocev2.OpMiddle) {
		p.Payload = 256
	}
	h.address(&p, i)
	h.transmitted++
	n.frames = append(n.frames, frame{id: h.id<<20 | i})
	n.carry(h.up(), false, func() { n.input(h.node, p) })
}

// answered serves an acknowledgement at the requester.
func (h *host) answered(psn rocev2.PSN, syn rocev2.Syndrome) {
	i := int(psn.Sub(h.sqPSN)) // indices stay far below 2^23
	if i >= h.top {
		h.n.tb.Fatalf("host %d got feedback for %06x, which it never sent", h.id, psn)
	}
	done := i
	if syn.Kind() == rocev2.KindACK {
		done++
	}
	if done > h.una {
		h.completed(done)
	}
	switch syn.Kind() {
	case rocev2.KindSequence:
		if i == h.una && (h.strict || !h.restarted) {
			h.nxt, h.restarted = i, true
			h.waves++
			h.transmitWindow()
			h.arm()
		}
	case rocev2.KindRNR:
		if i == h.una && !h.deferred {
			g, d := h.una, rnrDelay
			if h.n.rnrTimers {
				d = syn.RNRCode().Duration()
			}
			h.deferred = true
			h.n.after(d, func() {
				if h.deferred = false; h.una == g {
					h.nxt = h.una
					h.transmitWindow()
					h.arm()
				}
			})
		}
	case rocev2.KindFatal:
		if h.n.failure == nil {
			h.n.tb.Fatalf("host %d got fatal NAK %#x", h.id, syn)
		}
	}
	h.transmitWindow()
}

// completed checks the promise for the packets below to: every receiver has their bytes.
func (h *host) completed(to int) {
	if h.n.quorum > 0 {
		h.completedByQuorum(to)
	}
	for _, r := range h.n.hosts {
		if r == h || r.removed || h.n.quorum > 0 {
			continue
		}
		have := 0
		for _, g := range r.got {
			if g>>20 == h.id {
				have++
			}
		}
		if r.in && have+r.missed[h.id] < to {
			h.n.tb.Fatalf("I2: host %d was told %d packets are done, host %d has %d and joined after %d", h.id, to, r.id, have, r.missed[h.id])
		}
	}
	h.una, h.restarted, h.tries = to, false, 0
	h.nxt = max(h.nxt, to)
	h.arm()
	if h.una == len(h.ops) && h.then != nil {
		h.then()
	}
}

// The responder.

// deliver gives h a packet, which h serves after those before it.
func (h *host) deliver(psn rocev2.PSN, frame int, ackReq bool) {
	if h.pause == nil {
		h.receive(psn, frame, ackReq)
		return
	}
	h.queue = append(h.queue, func() { h.receive(psn, frame, ackReq) })
	if len(h.queue) == 1 {
		h.n.after(h.pause(), h.checkTimeout)
	}
}

func (h *host) checkTimeout() {
	h.queue[0]()
	if h.queue = h.queue[1:]; len(h.queue) > 0 {
		h.n.after(h.pause(), h.checkTimeout)
	}
}

// noFrame is the frame of a keepalive probe.
const noFrame = -1

func (h *host) receive(psn rocev2.PSN, frame int, ackReq bool) {
	if h.removed || h.isDead() {
		return
	}
	expected := h.ePSN.Add(int32(len(h.got)))
	if frame == noFrame && !psn.Less(expected) {
		h.n.tb.Fatalf("R52: a probe with PSN %06x, host %d expects %06x", psn, h.id, expected)
	}
	h.received++
	if h.fails(psn == expected) {
		return
	}
	switch d := psn.Sub(expected); {
	case d < 0:
		if h.strict {
			h.nakSent = h.nakSent && !ackReq
		}
		if ackReq || !h.strict {
			h.reply(len(h.got), rocev2.SyndromeACK)
		}
	case d > 0:
		if !h.nakSent {
			h.nakSent = true
			h.nakCount++
			h.reply(len(h.got), rocev2.SyndromeNAKSequence)
		}
	case h.rnrLeft > 0 && h.n.rng(20) == 0:
		h.rnrLeft--
		h.nakSent = h.strict
		h.reply(len(h.got), rocev2.SyndromeRNR|rocev2.Syndrome(h.n.rng(32)))
	default:
		h.nakSent = false
		if op := h.n.hosts[frame>>20].ops[frame&0xFFFFF]; h.psnSkew != 0 && len(h.got) == 0 && !op.Is(rocev2.OpStart) {
			h.failed = true // as a responder's queue pair does at a packet that begins no message
			h.reply(0, rocev2.SyndromeNAKInvalid)
			return
		}
		h.n.sameMessage(h, frame)
		h.got = append(h.got, frame)
		h.congests()
		if ackReq {
			h.reply(len(h.got), rocev2.SyndromeACK)
		}
	}
}

// sameMessage fails the test if frame begins or continues a message of another
// source while one is incomplete.
func (n *network) sameMessage(h *host, frame int) {
	if len(h.got) == 0 {
		return
	}
	last := h.got[len(h.got)-1]
	if op := n.hosts[last>>20].ops[last&0xFFFFF]; frame != last+1 && !op.Is(rocev2.OpEnd) {
		n.tb.Fatalf("host %d accepts packet %x after %x, inside a message", h.id, frame, last)
	}
}

// reply sends an acknowledgement of a receiver that has count packets.
func (h *host) reply(count int, syn rocev2.Syndrome) {
	psn := h.ePSN.Add(int32(count))
	if syn.Kind() == rocev2.KindACK {
		psn = psn.Prev()
	}
	msgs := rocev2.MSN(0)
	for _, f := range h.got[:count] {
		if h.n.hosts[f>>20].ops[f&0xFFFFF].Is(rocev2.OpEnd) {
			msgs++
		}
	}
	if count == 0 && syn.Kind() == rocev2.KindACK && !h.strict {
		psn = rocev2.PSNMask // rdma_rxe does so
	}
	p := Packet{Group: groupIP, Src: h.ip, DestQP: groupQPN, Op: rocev2.Acknowledge, PSN: psn, Syndrome: syn, MSN: msgs, BECN: h.marked}
	h.marked = false
	h.n.carry(h.up(), true, func() {
		h.offers, h.chances = 0, 0
		h.n.naive.feedback(h.id, count)
		if syn.Kind() != rocev2.KindACK && count == h.n.naive.prefix(h.id) {
			h.n.naive.nak[h.id] = count
		}
		h.n.input(h.node, p)
	})
}
