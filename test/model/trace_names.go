// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
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
		return fmt.Sprintf("probe %06x", uint32(p.psn))
	}
	if !p.feedback {
		return fmt.Sprintf("packet %d of %s, PSN %06x", p.index, name(int(p.source)), uint32(p.psn))
	}
	return fmt.Sprintf("%s %06x", feedbackName(p.syndrome), uint32(p.psn))
}

func feedbackName(s rocev2.Syndrome) string { return [...]string{"ACK", "NAK", "RNR", "NAK"}[rank(s)] }

func (w *World) legName(sw int, l mcast.LegID) string {
	r := &w.switches[sw]
	if n := r.legNear[l]; n != 0 {
		return fmt.Sprintf("N%d", n)
	}
	return name(r.at[l])
}
