// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// Violation is a violated property, and the way to it.
type Violation struct {
	What   string
	Switch int // switch at which it was found; -1 at a host
	Steps  int // number of steps from the first state
	// Trace has the steps as transcripts for mcast/testdata, one for each switch, that of
	// Switch first.
	Trace []string
}

// fault records the first violation of a step.
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

// isSelective reports whether s is the syndrome of a selective NAK (R106), which is neither an ACK nor
// a NAK of any rank.
func isSelective(s rocev2.Syndrome) bool { return s&^0x1F == 0x40 }

// checkSelective checks a selective NAK (R106): it goes to another switch, about the source's packets
// between the highest one before and the one that has just come.
func (w *World) checkSelective(sw int, in *mcast.Packet, f *mcast.Feedback) {
	n := int32(f.Syndrome & 0x1F)
	if in == nil || in.Op == rocev2.Acknowledge || w.switches[sw].near[w.switches[sw].host[f.To]] == 0 {
		w.fault(sw, "sends a selective NAK of %s to %s without a packet of another switch", notation.PSN(f.PSN), name(w.switches[sw].host[f.To]))
	} else if f.PSN != w.before.Nxt && w.before.HasSource && w.before.Source == w.after.Source || f.PSN.Add(n) != in.PSN || n == 0 {
		w.fault(sw, "sends a selective NAK of %d packets from %s, after %s has come", n, notation.PSN(f.PSN), notation.PSN(in.PSN))
	}
}

// checkSwitch compares the states of a switch before and after a packet, or after a
// deadline if in is nil, with its output.
func (w *World) checkSwitch(sw int, in *mcast.Packet) {
	r, b, a := &w.switches[sw], &w.before, &w.after
	if !a.HasSource {
		return
	}
	same := b.HasSource && b.Source == a.Source
	for i := range w.swOut.Events {
		same = same && w.swOut.Events[i].Kind != mcast.SourceChanged
	}
	if same && a.Acked.Less(b.Acked) && !unplaced(b) { // R90: members that nearer switches counted for are behind this one
		w.fault(sw, "I4: A goes back from %s to %s", notation.PSN(b.Acked), notation.PSN(a.Acked))
	}
	fromSource := in != nil && in.Op != rocev2.Acknowledge && in.Src == hostIP(int(a.Source)) && in.Neighbor == r.near[a.Source] && (in.Neighbor == 0 || w.swOut.Drop != mcast.NoToken)
	if !same || a.Acked.Less(b.Acked) || fromSource && in.PSN == r.nakPSN {
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
		if isSelective(f.Syndrome) {
			w.checkSelective(sw, in, f)
			continue
		}
		w.checkPromise(sw, f)
		if r.host[f.To] != int(a.Source) {
			continue
		}
		if rank(f.Syndrome) == 0 {
			last, acked = f.PSN, true
			continue
		}
		w.checkNAK(sw, f)
	}
	if acked && last != a.Acked {
		w.fault(sw, "I2: sends ACK %s while A is %s", notation.PSN(last), notation.PSN(a.Acked))
	}
	w.checkDue(sw)
}

// count returns the number of the source's packets that an acknowledgement of psn covers.
func (w *World) count(source int, psn rocev2.PSN) int {
	return int(psn.Sub(w.cfg.host(source).SQ)) + 1
}

// checkLegs checks the state of each leg against I1, I2 and I5.
func (w *World) checkLegs(sw int, same bool, in *mcast.Packet) {
	r, b, a := &w.switches[sw], &w.before, &w.after
	src := int(a.Source)
	low, any := a.Acked, false
	for i := range a.Members {
		m := &a.Members[i]
		if !receives(m) || r.leg[i] == r.leg[src] {
			continue
		}
		if w.home[i] == sw && (!same || !receives(&b.Members[i])) { // it gets the message that begins here: that is promised too
			if n := uint8(w.count(src, m.Acked)); !w.outdated || n >= r.top[src] { // else the file is old, and has it too low
				p := &w.hosts[i].progress[src]
				p.since = min(p.since, n)
			}
		}
		if !any || m.Acked.Less(low) {
			low, any = m.Acked, true
		}
		if h := &w.hosts[i]; h.member() && h.progress[src].lacks(w.count(src, m.Acked)) {
			w.fault(sw, "I1: the leg of %s counts as having %d packets of %s, it has %v", name(i), w.count(src, m.Acked), name(src), &h.progress[src])
		}
		if !same || !receives(&b.Members[i]) || m.Acked != b.Members[i].Acked || a.Failed {
			continue
		}
		need := rank(b.Members[i].Pending)
		if in != nil && in.Op == rocev2.Acknowledge && w.isFrom(sw, i, in) && w.mayAskSource(i, sw, in, m.Acked) {
			need = max(need, rank(in.Syndrome))
		}
		if need == rank(rocev2.SyndromeNAKSequence) && m.Acked.Less(a.Acked) && (w.hosts[i].corrupted || w.down(sw, i) || w.onItsWay(sw, i) || w.hosts[i].progress[src].has(w.count(src, m.Acked))) {
			continue // the NAK has crossed the packet that it asks for (R74)
		}
		if need > rank(m.Pending) && !m.Recovering && !w.copied(src, r.leg[i], m.Acked.Next()) {
			w.fault(sw, "I5: a NAK of the leg of %s for %s is forgotten", name(i), notation.PSN(m.Acked.Next()))
		}
	}
	if any && low != a.Acked && w.cfg.Policy != mcast.Quorum && !(low.Sub(a.Acked) > 0 && unplaced(a)) {
		w.fault(sw, "I2: acked is %s, the minimum over the legs %s", notation.PSN(a.Acked), notation.PSN(low))
	}
}

// receives reports whether a member gets new data.
func receives(m *mcast.MemberStatus) bool { return m.Live && !m.Joining && !m.Unplaced }

// unplaced reports whether it is not known yet what members behind some leg have (R89).
func unplaced(st *mcast.GroupStatus) bool {
	return slices.ContainsFunc(st.Members, func(m mcast.MemberStatus) bool { return m.Unplaced })
}

// isFrom reports whether feedback comes from the leg of host i, and is of this layout.
func (w *World) isFrom(sw, i int, in *mcast.Packet) bool {
	nbr := w.switches[sw].near[i]
	return in.Neighbor == nbr && (nbr != 0 && in.MSN == w.tagOf(sw, int(w.after.Source)) || nbr == 0 && in.Src == hostIP(i))
}

// mayAskSource reports whether feedback is a NAK for the packet after acked.
func (w *World) mayAskSource(i, sw int, in *mcast.Packet, acked rocev2.PSN) bool {
	if rank(in.Syndrome) == 0 {
		return false
	}
	psn := in.PSN
	if in.Neighbor == 0 { // in the receiver's numbering: the NAK names the packet that the receiver lacks
		if psn != w.hosts[i].qp.ExpectedPSN() {
			return false
		}
		if p := &w.hosts[i].progress[w.after.Source]; p.first != none {
			psn = w.cfg.host(int(w.after.Source)).SQ.Add(int32(p.got))
		} else {
			psn = w.cfg.host(int(w.after.Source)).SQ.Add(int32(p.since))
		}
	}
	return psn == acked.Next() && psn.Less(w.after.Nxt)
}

// copied reports whether the step sent psn to a leg.
func (w *World) copied(source int, l mcast.LegID, psn rocev2.PSN) bool {
	for i := range w.swOut.Copies {
		if c := &w.swOut.Copies[i]; c.Leg == l && int(frameOf(c.Frame).index)+1 == w.count(source, psn) {
			return true
		}
	}
	return false
}

// checkPSN checks that a copy has its receiver's number or, between switches, its
// source's.
func (w *World) checkPSN(sw int, c *mcast.Copy, p *packet) {
	want := w.cfg.host(int(p.source)).SQ.Add(int32(p.index))
	if r := &w.switches[sw]; r.legNear[c.Leg] == 0 {
		to := r.at[c.Leg]
		h := &w.hosts[to]
		at := &h.progress[p.source]
		switch {
		case h.misnumbered:
			return
		case at.first != none:
			want = h.qp.ExpectedPSN().Add(int32(p.index) - int32(at.got))
		case w.cfg.Tree == Flat:
			want = h.qp.ExpectedPSN().Add(int32(p.index) - int32(at.since))
		default:
			return // the member's own switch determines where it begins
		}
	}
	if c.PSN != want {
		w.fault(sw, "the copy of packet %d of %s for leg %d is numbered %s, not %s", p.index, name(int(p.source)), c.Leg, notation.PSN(c.PSN), notation.PSN(want))
	}
}

// checkNAK checks a NAK to the source against I3 and I6.
func (w *World) checkNAK(sw int, f *mcast.Feedback) {
	r, k := &w.switches[sw], rank(f.Syndrome)
	if f.PSN != w.after.Acked.Next() {
		w.fault(sw, "I3: sends NAK %s while A is %s", notation.PSN(f.PSN), notation.PSN(w.after.Acked))
	}
	if !w.hasPendingNAK(sw, k) {
		w.fault(sw, "sends NAK %s, which no leg asks for", notation.PSN(f.PSN))
	}
	if r.nakRank >= k && r.nakPSN == f.PSN {
		w.fault(sw, "I6: sends a second NAK %s before its PSN has passed", notation.PSN(f.PSN))
	}
	r.nakRank, r.nakPSN = k, f.PSN
}

// hasPendingNAK reports whether a leg has a NAK of rank k pending for acked+1.
func (w *World) hasPendingNAK(sw, k int) bool {
	r, a := &w.switches[sw], &w.after
	for i := range a.Members {
		if m := &a.Members[i]; receives(m) && r.leg[i] != r.leg[a.Source] && m.Acked == a.Acked && rank(m.Pending) == k {
			return true
		}
	}
	if a.InTree && k == rank(rocev2.SyndromeRNR) && !(a.Token.Serving && r.host[a.Token.Member] == int(a.Source)) {
		return true // the token is elsewhere
	}
	if w.cfg.Fair && k == rank(rocev2.SyndromeRNR) && a.Acked.Next() == a.Nxt && w.waited(int(a.Source)) {
		return true
	}
	// The other reason is a request for a message that has waited for members to join or to
	// show their numbering, or for the file.
	// Or for a packet that was lost before the fast path.
	return a.Failed && k == rank(a.FailSyndrome) || (len(w.cfg.Changes) > 0 || w.cfg.Stored || w.cfg.FastPath > 0) && k == 1 && a.Acked.Next() == a.Nxt
}

// waited reports whether a host other than src has begun to send, and is not done.
func (w *World) waited(src int) bool {
	for s := range w.streams {
		if h := &w.hosts[s]; s != src && h.started && int(h.done) < len(w.streams[s].wrs) {
			return true
		}
	}
	return false
}

// checkDue checks that a NAK pending for acked+1 has been sent to the source.
func (w *World) checkDue(sw int) {
	r, a := &w.switches[sw], &w.after
	if a.Failed || unplaced(a) {
		return
	}
	for i := range a.Members {
		m := &a.Members[i]
		if receives(m) && r.leg[i] != r.leg[a.Source] && m.Acked == a.Acked && rank(m.Pending) > 0 &&
			(r.nakPSN != a.Acked.Next() || r.nakRank < rank(m.Pending)) {
			w.fault(sw, "I5: the NAK of the leg of %s for %s is due and was not sent", name(i), notation.PSN(a.Acked.Next()))
			return
		}
	}
}
