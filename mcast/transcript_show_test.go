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
