// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// toHost delivers a packet to the queue pair of host i.
func (w *World) toHost(i int, p packet) {
	h := &w.hosts[i]
	if h.dead {
		return
	}
	if p.feedback {
		ahead := h.qp.Stats().AcksAhead
		h.qp.Input(w.now, &rc.Packet{Op: rocev2.Acknowledge, DestQP: qpn(i) + freshQPN*rocev2.QPN(h.gen), PSN: p.psn, Syndrome: p.syndrome}, &w.qpOut)
		// After a restart the switch asks for the next packet, which may not have been sent (R83).
		if h.qp.Stats().AcksAhead != ahead && !(w.restarted() && rank(p.syndrome) == 1) {
			w.fault(-1, "host %s: feedback for %s, which it never sent", name(i), notation.PSN(p.psn))
		}
		w.served(i)
		return
	}
	if p.probe {
		w.probe(i, p)
		return
	}
	f := &w.streams[p.source].frames[p.index]
	in := rc.Packet{Op: f.op, DestQP: qpn(i) + freshQPN*rocev2.QPN(p.gen), PSN: p.psn, AckReq: p.ackReq, Payload: f.payload}
	if f.op.Is(rocev2.OpRETH) {
		in.VA, in.RKey, in.DMALen = w.streams[p.source].wrs[f.msg].VA, groupKey, f.dmaLen
		if p.reth {
			in.VA, in.RKey = p.va, p.rkey
		}
	}
	expected := h.qp.ExpectedPSN()
	if i > 1 && p.index < h.progress[p.source].got && w.cfg.unnoticed() {
		w.fault(-1, "host %s gets packet %d of %s again, and lost nothing", name(i), p.index, name(int(p.source)))
	}
	if h.progress[p.source].next(&w.streams[p.source], int(p.index)) { // bytes of an earlier state must not pass for the packet's
		at := w.targetOf(i, &p)
		clear(at[:min(len(at), len(f.payload))])
		if h.qp.Config().Personality == rc.ConnectXRepeat { // nor for those behind it, which it may have kept
			at = at[:min(len(at), len(w.streams[p.source].wrs[f.msg].Data)-f.off)]
			clear(at)
		}
	}
	h.qp.Input(w.now, &in, &w.qpOut)
	for n := h.qp.ExpectedPSN().Sub(expected); n > 0; n-- { // more than one if some were kept behind a gap
		w.checkAccepted(i, p)
		p.index++
	}
	w.served(i)
}

// probe delivers a keepalive probe to the queue pair of host i: a WRITE of no bytes. If
// its PSN is the expected one the queue pair executes it, and expects the next PSN.
func (w *World) probe(i int, p packet) {
	h := &w.hosts[i]
	in := rc.Packet{Op: rocev2.WriteOnly, DestQP: qpn(i) + freshQPN*rocev2.QPN(p.gen), PSN: p.psn, AckReq: true}
	expected := h.qp.ExpectedPSN()
	h.qp.Input(w.now, &in, &w.qpOut)
	if h.qp.ExpectedPSN() != expected && !h.misnumbered {
		w.fault(-1, "host %s, whose numbers are right, accepts a probe", name(i))
	}
	w.served(i)
}

// served sends the packets of the queue pair of host i, and checks its completions.
func (w *World) served(i int) {
	h, o := &w.hosts[i], &w.qpOut
	h.qp.Transmit(w.now, o, w.cfg.SendWindow+1)
	for k := range o.Packets {
		p := &o.Packets[k]
		out := packet{psn: p.PSN, ackReq: p.AckReq, syndrome: p.Syndrome, feedback: p.Op == rocev2.Acknowledge}
		if !out.feedback {
			out.source, out.index = uint8(i), uint8(p.PSN.Sub(w.cfg.host(i).SQ))
			w.checkSent(i, out, p)
		}
		if out.feedback && w.cfg.Probe {
			out.msn = p.MSN
		}
		w.send(h.up, out)
	}
	for k := range o.Completions {
		w.checkCompletion(i, &o.Completions[k])
	}
	o.Reset()
	if h.broken() && !w.mayBreak(i) {
		w.fault(-1, "host %s: its queue pair is in the error state", name(i))
	}
}
