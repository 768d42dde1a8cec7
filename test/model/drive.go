// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// toSwitch is the driver of a switch: it verifies a packet only if the switch asks for
// it.
func (w *World) toSwitch(sw, l int, p packet) {
	r := &w.switches[sw]
	if p.report != nil {
		w.reported(&arrival{sw, w.links[l].nbr, *p.report})
		return
	}
	in := w.inputOf(sw, l, p)
	w.snapshot(sw, &w.before)
	r.dev.Input(w.now, &in, &w.swOut)
	if w.swOut.NeedVerify {
		if o := &w.swOut; len(o.Copies)+len(o.Feedback)+len(o.Events) > 0 {
			w.fault(sw, "NeedVerify together with effects")
		}
		in.Verified = true
		r.dev.Input(w.now, &in, &w.swOut)
	}
	w.snapshot(sw, &w.after)
	if w.swOut.NeedRevoke {
		if w.recorder != nil {
			w.recorder.served(w, sw, &in, &w.swOut)
		}
		return
	}
	w.forwarded(sw, &in)
}

// inputOf returns what the driver of a switch decodes of packet p from link l.
func (w *World) inputOf(sw, l int, p packet) mcast.Packet {
	r := &w.switches[sw]
	in := mcast.Packet{
		Group: groupIP, DestQP: groupQPN, Src: hostIP(int(w.links[l].from)), Neighbor: w.links[l].nbr,
		Op: rocev2.Acknowledge, PSN: p.psn, Syndrome: p.syndrome, AckReq: p.ackReq,
		MSN: p.msn,
	}
	if !p.feedback {
		f := &w.streams[p.source].frames[p.index]
		in.Src, in.Op, in.Payload = hostIP(int(p.source)), f.op, uint16(len(f.payload))
		in.Frame, in.RetainBytes = r.newHandle(&p), frameBytes
		if f.op.Is(rocev2.OpRETH) {
			in.VA, in.RKey, in.DMALen = w.streams[p.source].wrs[f.msg].VA, groupKey, f.dmaLen
		}
	} else if in.Neighbor != 0 {
		in.Src = hostIP(int(p.source)) // between switches feedback names the source that it is for
	}
	return in
}

// forwarded carries out a switch's output.
func (w *World) forwarded(sw int, in *mcast.Packet) {
	r, o := &w.switches[sw], &w.swOut
	if w.recorder != nil {
		w.recorder.served(w, sw, in, o)
	}
	w.noteTop(sw)
	if !w.retain(sw, in) {
		return
	}
	if !w.endToEnd {
		w.checkSwitch(sw, in)
	}
	w.events(sw)
	for i := range o.Copies {
		w.copy(sw, &o.Copies[i])
	}
	for i := range o.Probes {
		q := &o.Probes[i]
		to := r.at[q.Leg]
		w.send(r.down[to], packet{probe: true, psn: q.PSN, gen: w.hosts[to].gen})
	}
	w.release(sw)
	for i := range o.Feedback {
		f := &o.Feedback[i]
		to := r.host[f.To]
		p := packet{feedback: true, source: uint8(to), psn: f.PSN, syndrome: f.Syndrome}
		if w.home[to] != sw {
			p.msn = f.MSN
		}
		w.send(w.linkOf(sw, r.leg[to]), p)
	}
	for i := range o.Reports {
		w.report(sw, &o.Reports[i])
	}
	if w.cfg.FastPath > 0 {
		w.takeOrders(sw)
	}
}

// noteTop records how far a switch has forwarded its source's packets.
func (w *World) noteTop(sw int) {
	if st := &w.after; st.HasSource {
		src := int(st.Source)
		w.switches[sw].top[src] = max(w.switches[sw].top[src], uint8(w.count(src, st.Nxt)-1))
	}
}

// copy sends a copy, if the queue of its port has room.
func (w *World) copy(sw int, c *mcast.Copy) {
	r := &w.switches[sw]
	to, l := r.at[c.Leg], w.linkOf(sw, c.Leg)
	p := frameOf(c.Frame)
	w.checkRing(sw, w.cfg.host(int(p.source)).SQ.Add(int32(p.index)), "a copy is made")
	p.psn, p.ackReq = c.PSN, p.ackReq || c.Flags&mcast.SetAckReq != 0
	if r.legNear[c.Leg] == 0 {
		p.gen = w.hosts[to].gen
	}
	if !w.endToEnd {
		w.checkPSN(sw, c, &p)
	}
	if c.Flags&mcast.SetRETH != 0 {
		p.reth, p.va, p.rkey = true, c.VA, c.RKey
	}
	if k := &w.links[l]; k.full > w.now {
		if k.room == 0 {
			w.requeue(sw, c, l)
			return
		}
		k.room--
	}
	w.send(l, p)
}

// requeue returns a copy to the switch for which the queue of its port has no room.
func (w *World) requeue(sw int, c *mcast.Copy, l int) {
	r, until := &w.switches[sw], w.links[l].full
	if !r.dev.Requeue(c, until) {
		w.corrupt(l) // lost
		return
	}
	x := &r.legs[c.Leg]
	x.top = min(x.top, frameOf(c.Frame).index)
	if at, ok := r.dev.NextDeadline(); !ok || at > until {
		w.fault(sw, "a copy of packet %d for leg %d is deferred, and nothing is due when there is room", frameOf(c.Frame).index, c.Leg)
	}
}

// events follows the switch's events for the control plane.
func (w *World) events(sw int) {
	r := &w.switches[sw]
	for _, e := range w.swOut.Events {
		i := r.host[e.Member]
		switch e.Kind {
		case mcast.PositionsDue:
			r.storage.due = true
		case mcast.MemberEvicted:
			r.storage.due = w.cfg.Stored
			w.checkEvicted(sw, i, e.Syndrome)
			w.hosts[i].evicted = true
		case mcast.GroupFailed:
			w.checkFailed(sw, i, e.Syndrome)
			r.failed, r.storage.due, w.untold = true, w.cfg.Stored, w.untold || !w.before.HasSource || w.outdated && e.Syndrome == 0
		case mcast.SourceChanged:
		case mcast.NumberMismatch: // counted over packets of all interleavings that were tried: not part of the state
		default:
			w.fault(sw, "event of kind %d for %s, syndrome %#x", e.Kind, name(i), uint8(e.Syndrome))
		}
	}
}
