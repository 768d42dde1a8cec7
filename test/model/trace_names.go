// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// Names in transcripts.

func (w *World) nodeName(n node) string {
	if int(n) < len(w.hosts) {
		return name(int(n))
	}
	return fmt.Sprintf("switch %d", int(n)-len(w.hosts))
}

func (w *World) packetName(l *link, p *packet) string {
	if p.report != nil {
		return fmt.Sprintf("report %+v", *p.report)
	}
	if p.probe {
		return fmt.Sprintf("probe %s", notation.PSN(p.psn))
	}
	if !p.feedback {
		return fmt.Sprintf("packet %d of %s, PSN %s", p.index, name(int(p.source)), notation.PSN(p.psn))
	}
	return fmt.Sprintf("%s %s", feedbackName(p.syndrome), notation.PSN(p.psn))
}

func feedbackName(s rocev2.Syndrome) string { return [...]string{"ACK", "NAK", "RNR", "NAK"}[rank(s)] }

func (w *World) legName(sw int, l mcast.LegID) string {
	r := &w.switches[sw]
	if n := r.legNear[l]; n != 0 {
		return fmt.Sprintf("N%d", n)
	}
	return name(r.at[l])
}
