// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import "math"

// targetCase is the case of the targets.
var targetCase = benchCase{payload: 1024, legs: 3}

// Target is a bound that gleamd should keep to, as a ratio of two numbers of one
// run.
type Target struct {
	Name     string  `json:"name"`
	Measured float64 `json:"measured"`
	Bound    float64 `json:"bound"`
	AtMost   bool    `json:"at_most"` // Bound is the highest good value, not the lowest
	Met      bool    `json:"met"`
	// ByCPU is the ratio by CPU time per packet in place of packets a second, for
	// targets about packets a second: other programs on the machine disturb it less.
	// Else 0.
	ByCPU float64 `json:"by_cpu,omitempty"`
}

// Bounds of the targets.
const (
	overBare      = 0.90
	overBridge    = 1.25
	overForwarder = 2.5
	feedbackCost  = 0.10
	latencyRatio  = 2
)

// judge fills in the targets for which everything was measured.
func (r *Result) judge() {
	own := r.find(gleamdRow)
	if own == nil {
		return
	}
	ratio := func(name, to string, bound float64) {
		if x := r.find(to); x != nil {
			t := r.add(name, ratioOf(own, x), bound, false)
			if own.CPU > 0 {
				t.ByCPU = math.Round(x.CPU/own.CPU*1e3) / 1e3
			}
		}
	}
	ratio("gleamd / bare AF_XDP loop", bareRow, overBare)
	ratio("gleamd / bridge multicast flood", bridgeRow, overBridge)
	ratio("gleamd / UDP forwarder", forwarderRow, overForwarder)
	r.add("loss of gleamd at 0.9 of saturation", own.Loss, 0, true)
	if x := r.find(gleamdAckRow); x != nil {
		r.add("data throughput lost to ACKs of 3 receivers for every 8th packet", 1-ratioOf(x, own), feedbackCost, true)
	}
	p50 := make(map[string]float64)
	for _, l := range r.Latency {
		if l.Gap == float64(latencyGaps[0].Microseconds()) {
			p50[l.Name] = l.P50
		}
	}
	if a, b := p50[gleamdRow], p50[bridgeRow]; a > 0 && b > 0 {
		r.add("p50 latency at a frame every 200 µs, gleamd / bridge", a/b, latencyRatio, true)
	}
}

// ratioOf is the median over the rounds of a's in_pps as a share of b's in the same
// round: the machine's speed changes from one round to the next.
func ratioOf(a, b *Row) float64 {
	var v []float64
	for i := range min(len(a.In), len(b.In)) {
		if b.In[i] > 0 {
			v = append(v, a.In[i]/b.In[i])
		}
	}
	return median(v)
}

func (r *Result) add(name string, measured, bound float64, atMost bool) *Target {
	t := Target{Name: name, Measured: millionth(measured), Bound: bound, AtMost: atMost}
	if t.Met = t.Measured >= bound; atMost {
		t.Met = t.Measured <= bound
	}
	r.Targets = append(r.Targets, t)
	return &r.Targets[len(r.Targets)-1]
}
