// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// positions prints the positions of the group; with last, those of a switch that ends.
func (s *transcript) positions(a args, w *strings.Builder) {
	var p Positions
	n, ok := s.sw.Group(0).Positions(&p)
	if a.d.HasArg("last") {
		ok = s.sw.Group(0).LastPositions(&p)
	}
	if !ok {
		fmt.Fprintln(w, "none")
		return
	}
	fmt.Fprintf(w, "number %d", n)
	if p.HasSource {
		fmt.Fprintf(w, ", turn of %s", nameOf(p.Source))
	}
	for i, at := range p.Members {
		if at.Known {
			fmt.Fprintf(w, ", %s at %s,%s", nameOf(MemberID(i)), notation.PSN(at.Send), notation.PSN(at.Receive))
		}
		if at.FullHistory && a.d.HasArg("history") {
			fmt.Fprint(w, " with a full history")
		}
		if at.Joining {
			fmt.Fprintf(w, ", %s joins", nameOf(MemberID(i)))
		}
	}
	fmt.Fprintln(w)
}

// afterWrap returns the position with a full history, if it is the registered one.
func (p Position) afterWrap(registered rocev2.PSN) Position {
	p.FullHistory = p.Known && p.Send == registered
	return p
}

// durable tells the switch that the present positions are durable.
func (s *transcript) durable(a args, w *strings.Builder) {
	var p Positions
	n, ok := s.sw.Group(0).Positions(&p)
	if !ok {
		fmt.Fprintln(w, "none")
		return
	}
	if len(a.d.CmdArgs) > 0 {
		n = uint32(num(a.t, a.d.CmdArgs[0].Key, 10, 32))
	}
	s.sw.PositionsStored(s.now, 0, n, &p, &s.out)
	s.ledger.close(a.t, s.sw, nil, &s.out)
	s.print()
}
