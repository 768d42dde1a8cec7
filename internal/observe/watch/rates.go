// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Rates are the changes of a group's counters at a switch, per second.
type Rates struct {
	Seconds     float64 `json:"seconds"` // the time that they were measured for
	DataIn      float64 `json:"data_in"`
	Repeated    float64 `json:"repeated"` // packets of DataIn that the source has sent again
	Goodput     float64 `json:"goodput"`  // bytes of payload without repetitions
	Copies      float64 `json:"copies"`
	Repairs     float64 `json:"repairs"` // copies that are repairs
	FeedbackIn  float64 `json:"feedback_in"`
	FeedbackOut float64 `json:"feedback_out"`
	// Progress is how many packets the receivers behind each leg have acknowledged, by the
	// ID of the switch, or the address of the member.
	Progress map[string]float64 `json:"progress"`
}

// Between compares two answers of a switch about one registration; nil if they are of two.
func Between(a, b *api.Group, over time.Duration) *Rates {
	if over <= 0 || a.Epoch != b.Epoch || b.Counters.DataIn < a.Counters.DataIn {
		return nil
	}
	r := &Rates{
		Seconds: over.Seconds(), DataIn: Per(a.Counters.DataIn, b.Counters.DataIn, over), Copies: Per(a.Counters.Copies, b.Counters.Copies, over),
		FeedbackIn: Per(a.Counters.FeedbackIn, b.Counters.FeedbackIn, over), FeedbackOut: Per(a.Counters.FeedbackOut, b.Counters.FeedbackOut, over),
		Repeated: Per(a.Counters.Repeated, b.Counters.Repeated, over), Goodput: Per(a.Counters.GoodBytes, b.Counters.GoodBytes, over),
		Progress: make(map[string]float64),
	}
	if a.Repair != nil && b.Repair != nil {
		r.Repairs = Per(a.Repair.Copies, b.Repair.Copies, over)
	}
	if a.Source != b.Source || !a.Source.IsValid() {
		return r // their PSNs are two sources'
	}
	was := acknowledged(a)
	for who, psn := range acknowledged(b) {
		if before, ok := was[who]; ok {
			r.Progress[who] = float64(max(0, rocev2.PSN(psn).Sub(rocev2.PSN(before)))) / over.Seconds()
		}
	}
	return r
}

// Per is the change of a counter per second; a counter that began anew has none.
func Per(a, b uint64, over time.Duration) float64 {
	if over <= 0 {
		return 0
	}
	return float64(b-min(a, b)) / over.Seconds()
}

// acknowledged has the PSNs that each leg of a group has acknowledged, by switch or member.
func acknowledged(g *api.Group) map[string]api.PSN {
	psns := make(map[string]api.PSN)
	for i := range g.Members {
		if m := &g.Members[i]; m.Switch == "" && m.Role != "source" {
			psns[m.IP.String()] = m.AckPSN
		}
	}
	if g.Tree != nil {
		for i := range g.Tree.Legs {
			psns[g.Tree.Legs[i].Switch] = g.Tree.Legs[i].AckPSN
		}
	}
	return psns
}
