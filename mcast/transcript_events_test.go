// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"

	"github.com/gleam-rdma/gleam/test/model/notation"
)

// eventLines are events in the form of transcripts. A syndrome 0 is left out.
func eventLines(events []Event) (lines []string) {
	for _, e := range events {
		if e.Kind == PositionsDue {
			lines = append(lines, "event: positions due")
			continue
		}
		what := map[EventKind]string{
			SourceChanged: "source is", MemberEvicted: "evicted", GroupFailed: "group failed by", SourceRefused: "refused", SourceConflict: "other source",
			NumberMismatch: "number differs of",
		}[e.Kind]
		more := ""
		if e.Syndrome != 0 {
			more = fmt.Sprintf(", syndrome %#x", uint8(e.Syndrome))
		}
		switch {
		case e.Kind == NumberMismatch && e.Number == VirtualQPN:
			more += fmt.Sprintf(", virtual QPN not %#x", uint32(e.Registered))
		case e.Kind == NumberMismatch:
			more += fmt.Sprintf(", %s not %s", map[Number]string{SendPSN: "PSN", ReceivePSN: "receive PSN"}[e.Number], notation.PSN(e.Registered))
		case e.Cause != e.Syndrome:
			more += fmt.Sprintf(", cause %#x", uint8(e.Cause))
		}
		at := notation.PSN(e.PSN)
		if e.Kind == NumberMismatch && e.Number == VirtualQPN {
			at = fmt.Sprintf("%#x", uint32(e.PSN))
		}
		lines = append(lines, fmt.Sprintf("event: %s %s at %s%s", what, nameOf(e.Member), at, more))
	}
	return lines
}
