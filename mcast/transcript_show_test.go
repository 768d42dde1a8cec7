// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// The group's state as transcripts show it, and the checks of it after each command.

func (s *transcript) show(w *strings.Builder) {
	var st GroupStatus
	if !s.sw.Group(0).Snapshot(&st) {
		fmt.Fprintln(w, "no group")
		return
	}
	fmt.Fprintf(w, "A=%s hi=%s failed=%v", notation.PSN(st.Acked), notation.PSN(st.Nxt), st.Failed)
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
			fmt.Fprintf(w, " acked=%s lag=%d", notation.PSN(m.Acked), m.Lag)
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
			fmt.Fprintf(w, " expects=%s registered=%s", notation.PSN(rocev2.PSN(x.Observed)), notation.PSN(rocev2.PSN(x.Registered)))
		} else if m.Unverified {
			fmt.Fprint(w, " unverified")
		}
		fmt.Fprintln(w)
	}
}
