// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"
)

// printEvents writes events in the form of transcripts.
func printEvents(w *strings.Builder, events []Event) {
	for _, e := range events {
		if e.Kind == PositionsDue {
			fmt.Fprintln(w, "event: positions due")
			continue
		}
		what := map[EventKind]string{
			SourceChanged: "source is", MemberEvicted: "evicted", GroupFailed: "group failed by", SourceRefused: "refused", SourceConflict: "other source",
			NumberMismatch: "number differs of",
		}[e.Kind]
		more := ""
		switch {
		case e.Cause != e.Syndrome && e.Kind != NumberMismatch:
			more = fmt.Sprintf(", cause %#x", uint8(e.Cause))
		case e.Kind == NumberMismatch:
			more = fmt.Sprintf(", %s not %06x", map[Number]string{SendPSN: "PSN", VirtualQPN: "virtual QPN", ReceivePSN: "receive PSN"}[e.Number], uint32(e.Registered))
		}
		fmt.Fprintf(w, "event: %s %s at %06x, syndrome %#x%s\n", what, nameOf(e.Member), uint32(e.PSN), uint8(e.Syndrome), more)
	}
}
