// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Violation is something that must not happen, and how it does.
type Violation struct {
	What   string
	Switch int // where it was seen; -1 at a host
	Steps  int // from the first state
	// Trace is what happened, as transcripts for mcast/testdata, one for each
	// switch, the one where it was seen first.
	Trace []string
}

// fault notes the first violation of a step.
func (w *World) fault(sw int, format string, args ...any) {
	if w.wrong == nil {
		w.wrong = &Violation{What: fmt.Sprintf(format, args...), Switch: sw}
	}
}

// rank orders syndromes by severity; an ACK is 0.
func rank(s rocev2.Syndrome) int {
	switch s.Kind() {
	case rocev2.KindSequence:
		return 1
	case rocev2.KindRNR:
		return 2
	case rocev2.KindFatal:
		return 3
	}
	return 0
}

// checkSwitch compares a switch before and after a packet, or a deadline if in
// is nil, with what it put out.
func (w *World) checkSwitch(sw int, in *mcast.Packet) {
	r, b, a := &w.relays[sw], &w.before, &w.after
	if !a.HasSource {
		return
	}
	same := b.HasSource && b.Source == a.Source
	for i := range w.swOut.Events {
		same = same && w.swOut.Events[i].Kind != mcast.SourceChanged
	}
	if same && a.Acked.Less(b.Acked) {
		w.fault(sw, "I4: A goes back from %06x to %06x", uint32(b.Acked), uint32(a.Acked))
	}
	fromSource := in != nil && in.Op != rocev2.Acknowledge && in.Src == hostIP(int(a.Source))
	if !same || fromSource && in.PSN == r.nakPSN {
		r.nakRank, r.nakPSN = 0, 0
	}
	w.checkLegs(sw, same, in)
	if w.cfg.Repair > 0 {
		w.checkRepair(sw, same, in)
	}
	last := rocev2.PSN(0)
	acked := false
	for i := range w.swOut.Feedback {
		f := &w.swOut.Feedback[i]
		w.checkPromise(sw, f)
		if f.To != a.Source {
			continue
		}
		if rank(f.Syndrome) == 0 {
			last, acked = f.PSN, true
			continue
		}
		w.checkNAK(sw, f)
	}
	if acked && last != a.Acked {
		w.fault(sw, "I2: sends ACK %06x while A is %06x", uint32(last), uint32(a.Acked))
	}
	w.checkDue(sw)
}

// count returns how many of the source's packets an acknowledgement of psn is
// for.
func (w *World) count(source int, psn rocev2.PSN) int {
	return int(psn.Sub(w.cfg.host(source).SQ)) + 1
}

// checkLegs holds the state of each branch against I1, I2 and I5.
func (w *World) checkLegs(sw int, same bool, in *mcast.Packet) {
	r, b, a := &w.relays[sw], &w.before, &w.after
	src := int(a.Source)
	low, any := a.Acked, false
	for i := range a.Members {
		m := &a.Members[i]
		if !m.Live || r.leg[i] == r.leg[src] {
			continue
		}
		if !any || m.Acked.Less(low) {
			low, any = m.Acked, true
		}
		if h := &w.hosts[i]; !h.evicted && w.count(src, m.Acked) > int(h.got[src]) {
			w.fault(sw, "I1: the branch of %s counts as having %d packets of %s, it has %d", name(i), w.count(src, m.Acked), name(src), h.got[src])
		}
		if !same || !b.Members[i].Live || m.Acked != b.Members[i].Acked || a.Failed {
			continue
		}
		need := rank(b.Members[i].Pending)
		if in != nil && in.Op == rocev2.Acknowledge && w.isFrom(sw, i, in) && w.asks(i, sw, in, m.Acked) {
			need = max(need, rank(in.Syndrome))
		}
		if need > rank(m.Pending) && !m.Late && !w.copied(src, r.leg[i], m.Acked.Next()) {
			w.fault(sw, "I5: a NAK of the branch of %s for %06x is forgotten", name(i), uint32(m.Acked.Next()))
		}
	}
	if any && low != a.Acked {
		w.fault(sw, "I2: A is %06x, the minimum over the branches %06x", uint32(a.Acked), uint32(low))
	}
}

// isFrom says whether feedback is that of the branch host i is on.
func (w *World) isFrom(sw, i int, in *mcast.Packet) bool {
	nbr := w.relays[sw].spec.Legs[w.relays[sw].leg[i]].Neighbor
	return in.Neighbor == nbr && (nbr != 0 || in.Src == hostIP(i))
}

// asks says whether feedback is a NAK for the packet after acked.
func (w *World) asks(i, sw int, in *mcast.Packet, acked rocev2.PSN) bool {
	if rank(in.Syndrome) == 0 {
		return false
	}
	psn := in.PSN
	if in.Neighbor == 0 { // in the receiver's numbering: what it asks for is what it lacks
		if psn != w.hosts[i].qp.ExpectedPSN() {
			return false
		}
		psn = w.cfg.host(int(w.after.Source)).SQ.Add(int32(w.hosts[i].got[w.after.Source]))
	}
	return psn == acked.Next() && psn.Less(w.after.Next)
}

// copied says whether the step sent psn to a leg.
func (w *World) copied(source int, l mcast.LegID, psn rocev2.PSN) bool {
	for i := range w.swOut.Copies {
		if c := &w.swOut.Copies[i]; c.Leg == l && int(frameOf(c.Frame).index)+1 == w.count(source, psn) {
			return true
		}
	}
	return false
}

// checkPromise holds an acknowledgement against what the receivers have: an
// ACK or NAK implies that all below its PSN is everywhere.
func (w *World) checkPromise(sw int, f *mcast.Feedback) {
	r, src := &w.relays[sw], int(f.To)
	n := w.count(src, f.PSN)
	what := "ACK"
	if rank(f.Syndrome) != 0 {
		n--
		what = "NAK"
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		if r.leg[i] != r.leg[src] && !h.evicted && !w.leaves(i) && int(h.got[src]) < n {
			w.fault(sw, "%s %06x to %s says that %d packets are everywhere, %s has %d", what, uint32(f.PSN), name(src), n, name(i), h.got[src])
		}
	}
	if want := w.streams[src].messagesIn(n); int(f.MSN) != want {
		w.fault(sw, "%s %06x to %s has MSN %d, complete are %d messages", what, uint32(f.PSN), name(src), f.MSN, want)
	}
}

// leaves says whether this step evicts host i.
func (w *World) leaves(i int) bool {
	for k := range w.swOut.Events {
		if e := &w.swOut.Events[k]; e.Kind == mcast.MemberEvicted && int(e.Member) == i {
			return true
		}
	}
	return false
}

// checkPSN: a copy has its receiver's number, or between switches its source's.
func (w *World) checkPSN(sw int, c *mcast.Copy, p *packet) {
	want := w.cfg.host(int(p.source)).SQ.Add(int32(p.index))
	if to := int(w.links[w.relays[sw].out[c.Leg]].to); to < len(w.hosts) {
		h := &w.hosts[to]
		want = h.qp.ExpectedPSN().Add(int32(p.index) - int32(h.got[p.source]))
	}
	if c.PSN != want {
		w.fault(sw, "the copy of packet %d of %s for leg %d is numbered %06x, not %06x", p.index, name(int(p.source)), c.Leg, uint32(c.PSN), uint32(want))
	}
}

// checkNAK holds a NAK to the source against I3 and I6.
func (w *World) checkNAK(sw int, f *mcast.Feedback) {
	r, k := &w.relays[sw], rank(f.Syndrome)
	if f.PSN != w.after.Acked.Next() {
		w.fault(sw, "I3: sends NAK %06x while A is %06x", uint32(f.PSN), uint32(w.after.Acked))
	}
	if !w.wants(sw, k) {
		w.fault(sw, "sends NAK %06x, which no branch asks for", uint32(f.PSN))
	}
	if r.nakRank >= k && r.nakPSN == f.PSN {
		w.fault(sw, "I6: sends a second NAK %06x before its PSN has passed", uint32(f.PSN))
	}
	r.nakRank, r.nakPSN = k, f.PSN
}

// wants says whether some branch has a NAK of that rank pending for A+1.
func (w *World) wants(sw, k int) bool {
	r, a := &w.relays[sw], &w.after
	for i := range a.Members {
		if m := &a.Members[i]; m.Live && r.leg[i] != r.leg[a.Source] && m.Acked == a.Acked && rank(m.Pending) == k {
			return true
		}
	}
	return false
}

// checkDue: a NAK that is pending for A+1 has been sent on.
func (w *World) checkDue(sw int) {
	r, a := &w.relays[sw], &w.after
	if a.Failed {
		return
	}
	for i := range a.Members {
		m := &a.Members[i]
		if m.Live && r.leg[i] != r.leg[a.Source] && m.Acked == a.Acked && rank(m.Pending) > 0 &&
			(r.nakPSN != a.Acked.Next() || r.nakRank < rank(m.Pending)) {
			w.fault(sw, "I5: the NAK of the branch of %s for %06x is due and was not sent", name(i), uint32(a.Acked.Next()))
			return
		}
	}
}

// checkAccepted: what a receiver accepts is the next packet of its source, and
// the bytes are where they belong.
func (w *World) checkAccepted(i int, p packet) {
	h, f := &w.hosts[i], &w.streams[p.source].frames[p.index]
	if p.index != h.got[p.source] {
		w.fault(-1, "host %s accepts packet %d of %s, the next is %d", name(i), p.index, name(int(p.source)), h.got[p.source])
		return
	}
	at := w.place(i, &p)
	h.got[p.source]++
	if !bytes.Equal(at[:len(f.payload)], f.payload) {
		w.fault(-1, "host %s: the bytes of packet %d of %s are not where they belong", name(i), p.index, name(int(p.source)))
	}
}

// place returns the memory of host i where the bytes of p belong, its next
// packet.
func (w *World) place(i int, p *packet) []byte {
	h, f := &w.hosts[i], &w.streams[p.source].frames[p.index]
	if f.op.Is(rocev2.OpWrite) {
		return h.region[w.streams[p.source].wrs[f.msg].VA-groupVA+uint64(f.off):]
	}
	return h.bufs[w.receives(i)][f.off:]
}

// receives returns the ID of the receive that host i fills next.
func (w *World) receives(i int) int {
	n := 0
	for s := range w.streams {
		n += w.streams[s].messagesIn(int(w.hosts[i].got[s]))
	}
	return n
}

// checkSent: a requester sends what its stream says.
func (w *World) checkSent(i int, out packet, p *rc.Packet) {
	if i >= maxSources || int(out.index) >= len(w.streams[i].frames) {
		w.fault(-1, "host %s sends %06x, which is not of its stream", name(i), uint32(p.PSN))
		return
	}
	if f := &w.streams[i].frames[out.index]; f.op != p.Op || !bytes.Equal(f.payload, p.Payload) || f.op.Is(rocev2.OpRETH) && f.dmaLen != p.DMALen {
		w.fault(-1, "host %s sends opcode %#x with other bytes as packet %d", name(i), uint8(p.Op), out.index)
	}
}

// checkCompletion is the promise: a completion at the sender means that every
// member that was not evicted has the bytes.
func (w *World) checkCompletion(i int, c *rc.Completion) {
	h := &w.hosts[i]
	if c.Status != rc.Success {
		w.fault(-1, "host %s: completion %d with %v", name(i), c.ID, c.Status)
		return
	}
	if c.Recv() {
		w.checkReceived(i, c)
		return
	}
	if int(c.ID) != int(h.done) {
		w.fault(-1, "host %s: message %d completes, the next is %d", name(i), c.ID, h.done)
	}
	h.done++
	end := w.streams[i].ends[c.ID]
	for j := range w.hosts {
		r := &w.hosts[j]
		if j != i && !r.evicted && int(r.got[i]) < end {
			w.fault(-1, "FALSE COMPLETION: message %d of %s is complete, %s has %d of its %d packets", c.ID, name(i), name(j), r.got[i], end)
		}
	}
}

// checkEvicted: who lives is not taken for dead. A loss delays a receiver's
// answer by one timeout of the source, of which dead is 2.5: one loss does not
// make a living receiver silent for so long.
func (w *World) checkEvicted(sw, i int) {
	lost := w.cfg.Lose - w.left.Lose
	if !w.hosts[i].dead && lost < 2 && w.left.Delay == w.cfg.Delay {
		w.fault(sw, "%s is evicted, and lives", name(i))
	}
}

// checkReceived: a completed receive holds one whole message.
func (w *World) checkReceived(i int, c *rc.Completion) {
	h := &w.hosts[i]
	for s := range w.streams {
		st := &w.streams[s]
		if n := int(h.got[s]); n > 0 && st.frames[n-1].end {
			wr := &st.wrs[st.frames[n-1].msg]
			if c.Bytes == len(wr.Data) && bytes.Equal(h.bufs[c.ID][:c.Bytes], wr.Data) {
				return
			}
		}
	}
	w.fault(-1, "host %s: receive %d completes with %d bytes that are no message", name(i), c.ID, c.Bytes)
}
