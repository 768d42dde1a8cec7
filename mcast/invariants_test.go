// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"
)

// The group's state as transcripts show it, and the checks of it after each command.

func (s *transcript) show(w *strings.Builder) {
	var st GroupStatus
	if !s.sw.Snapshot(0, &st) {
		fmt.Fprintln(w, "no group")
		return
	}
	fmt.Fprintf(w, "A=%06x hi=%06x failed=%v", uint32(st.Acked), uint32(st.Nxt), st.Failed)
	if st.RetainedMax > 0 {
		fmt.Fprintf(w, " kept=%d most=%d", st.Retained/minFrameBytes, st.RetainedMax/minFrameBytes)
	}
	fmt.Fprintln(w)
	for i, m := range st.Members {
		fmt.Fprintf(w, "%s", nameOf(MemberID(i)))
		switch {
		case !m.Live:
			fmt.Fprint(w, " gone")
		case m.Source:
			fmt.Fprint(w, " source")
		case m.Joining:
			fmt.Fprint(w, " joining")
		default:
			fmt.Fprintf(w, " acked=%06x lag=%d", uint32(m.Acked), m.Lag)
		}
		if m.Pending != 0 {
			fmt.Fprintf(w, " pending=%#x", uint8(m.Pending))
		}
		if m.HoldsACK {
			fmt.Fprint(w, " holds")
		}
		if m.Recovering {
			fmt.Fprint(w, " late")
		}
		if x := &m.Mismatches[ReceivePSN]; x.Confirmed() {
			fmt.Fprintf(w, " expects=%06x registered=%06x", uint32(x.Observed), uint32(x.Registered))
		} else if m.Unverified {
			fmt.Fprint(w, " unverified")
		}
		fmt.Fprintln(w)
	}
}

// checkInvariants recomputes the state that the group keeps incrementally.
func checkInvariants(t fatalReporter, g *group) {
	if g == nil {
		return
	}
	pending, joining := int32(0), int32(0)
	for i := range g.legs {
		l := &g.legs[i]
		if g.unproven(i) {
			pending++
			if l.members == 0 || g.branchAt(i).flags&isReceiver != 0 {
				t.Fatalf("R52: leg %d of %d members is unverified, and receives: %v", i, l.members, g.branchAt(i).flags&isReceiver != 0)
			}
		}
		if l.joining {
			joining++
		}
	}
	if pending != g.numbering.numPending || joining != g.numJoining {
		t.Fatalf("kept %d unverified and %d joining legs, counted %d and %d", g.numbering.numPending, g.numJoining, pending, joining)
	}
	if g.source == none {
		return
	}
	var low, nrecv, npend, nfresh int32
	for i := range g.acks {
		b := &g.acks[i]
		if b.flags&isReceiver == 0 {
			if b.pending != sevNone {
				t.Fatalf("leg %d does not receive and has a pending NAK", i)
			}
			continue
		}
		nrecv++
		if b.acked.Less(g.acked) && g.quorum == 0 {
			t.Fatalf("I2: leg %d acknowledged %06x, below A %06x", i, b.acked, g.acked)
		}
		if !b.acked.Less(g.nxt) {
			t.Fatalf("leg %d acknowledged %06x, hi is %06x", i, b.acked, g.nxt)
		}
		if b.acked.LessEq(g.acked) || b.flags&joinedInFlight != 0 && g.quorum > 0 {
			low++
		}
		if b.flags&joinedInFlight != 0 {
			nfresh++
		}
		if b.pending != sevNone {
			npend++
		}
	}
	if nfresh != g.numJoinedInFlight || nfresh > 0 && g.inFlightUntil.LessEq(g.acked) {
		t.Fatalf("%d fresh receivers, kept %d, until %06x, A %06x", nfresh, g.numJoinedInFlight, uint32(g.inFlightUntil), uint32(g.acked))
	}
	if low != g.numAtAcked || nrecv != g.numReceivers || npend != g.numPending {
		t.Fatalf("kept low=%d nrecv=%d npend=%d, counted %d %d %d", g.numAtAcked, g.numReceivers, g.numPending, low, nrecv, npend)
	}
	if nrecv > 0 && low <= g.allowedBehind && !g.failed {
		t.Fatalf("A %06x could be higher: %d of %d receivers have no more", g.acked, low, nrecv)
	}
	checkStore(t, g)
}
