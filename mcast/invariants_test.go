// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"
)

// What transcripts show of a group, and check of it after each command.

func (s *transcript) show(w *strings.Builder) {
	var st GroupStatus
	if !s.sw.Snapshot(0, &st) {
		fmt.Fprintln(w, "no group")
		return
	}
	fmt.Fprintf(w, "A=%06x hi=%06x failed=%v", uint32(st.Acked), uint32(st.Next), st.Failed)
	if st.KeptMost > 0 {
		fmt.Fprintf(w, " kept=%d most=%d", st.Kept/minStored, st.KeptMost/minStored)
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
		if m.Holds {
			fmt.Fprint(w, " holds")
		}
		if m.Late {
			fmt.Fprint(w, " late")
		}
		if x := &m.Mismatches[ReceivePSN]; x.Holds() {
			fmt.Fprintf(w, " expects=%06x registered=%06x", uint32(x.Seen), uint32(x.Want))
		} else if m.Unverified {
			fmt.Fprint(w, " unverified")
		}
		fmt.Fprintln(w)
	}
}

// checkInvariants recomputes what the group keeps incrementally.
func checkInvariants(t fataler, g *group) {
	if g == nil {
		return
	}
	pending, joining := int32(0), int32(0)
	for i := range g.legs {
		l := &g.legs[i]
		if g.unproven(i) {
			pending++
			if l.members == 0 || g.branchAt(i).bits&receiving != 0 {
				t.Fatalf("R52: leg %d of %d members is unverified, and receives: %v", i, l.members, g.branchAt(i).bits&receiving != 0)
			}
		}
		if l.joining {
			joining++
		}
	}
	if pending != g.numbers.pending || joining != g.njoin {
		t.Fatalf("kept %d unverified and %d joining legs, counted %d and %d", g.numbers.pending, g.njoin, pending, joining)
	}
	if g.src == nobody {
		return
	}
	var low, nrecv, npend, nfresh int32
	for i := range g.branches {
		b := &g.branches[i]
		if b.bits&receiving == 0 {
			if b.pend != noPend {
				t.Fatalf("leg %d does not receive and has a pending NAK", i)
			}
			continue
		}
		nrecv++
		if b.a.Less(g.a) && g.quorum == 0 {
			t.Fatalf("I2: leg %d acknowledged %06x, below A %06x", i, b.a, g.a)
		}
		if !b.a.Less(g.hi) {
			t.Fatalf("leg %d acknowledged %06x, hi is %06x", i, b.a, g.hi)
		}
		if b.a.LessEq(g.a) || b.bits&fresh != 0 && g.quorum > 0 {
			low++
		}
		if b.bits&fresh != 0 {
			nfresh++
		}
		if b.pend != noPend {
			npend++
		}
	}
	if nfresh != g.nfresh || nfresh > 0 && g.freshTo.LessEq(g.a) {
		t.Fatalf("%d fresh receivers, kept %d, until %06x, A %06x", nfresh, g.nfresh, uint32(g.freshTo), uint32(g.a))
	}
	if low != g.low || nrecv != g.nrecv || npend != g.npend {
		t.Fatalf("kept low=%d nrecv=%d npend=%d, counted %d %d %d", g.low, g.nrecv, g.npend, low, nrecv, npend)
	}
	if nrecv > 0 && low <= g.slack && !g.dead {
		t.Fatalf("A %06x could be higher: %d of %d receivers have no more", g.a, low, nrecv)
	}
	checkStore(t, g)
}
