// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"math"

	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

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

// wideCase is the case of the fast path's target with more receivers.
var wideCase = benchCase{payload: 1024, legs: 7}

// longCase has frames in several buffers.
var longCase = benchCase{payload: 4096, legs: 3}

// Bounds of the targets.
const (
	overBare      = 0.90
	overBridge    = 1.25
	overForwarder = 2.5
	feedbackCost  = 0.10
	latencyRatio  = 2

	fastOverCeiling     = 0.76
	noStoreOverCeiling  = 0.84
	fastOverCeilingWide = 0.84
	fastOverGleamd      = 2.5
	fastOverBridge      = 3
	fastCPU             = 0.4
	fastLatency         = 0.5
	fastLatencyOver     = 1.2
	longFramesCPU       = 1 / 1.3
)

// judge fills in the targets for which everything was measured.
func (r *Result) judge() {
	r.judgeGleamd()
	r.judgeFast()
}

// judgeGleamd fills in the targets of gleamd's own data path.
func (r *Result) judgeGleamd() {
	own := r.find(gleamdRow, targetCase)
	if own == nil {
		return
	}
	r.ratio("gleamd / bare AF_XDP loop", own, bareRow, overBare)
	r.ratio("gleamd / bridge multicast flood", own, bridgeRow, overBridge)
	r.ratio("gleamd / UDP forwarder", own, forwarderRow, overForwarder)
	r.add("loss of gleamd at 0.9 of saturation", own.Loss, 0, true)
	if x := r.find(gleamdAckRow, targetCase); x != nil {
		r.add("data throughput lost to ACKs of 3 receivers for every 8th packet", 1-ratioOf(x, own), feedbackCost, true)
	}
	if a, b := r.sparseLatency(gleamdRow), r.sparseLatency(bridgeRow); a != nil && b != nil {
		r.add("p50 latency at a frame every 200 µs, gleamd / bridge", a.P50/b.P50, latencyRatio, true)
	}
}

// judgeFast fills in the targets of the fast path.
func (r *Result) judgeFast() {
	if wide := r.find(fastRow, wideCase); wide != nil {
		r.ratio("fast path / XDP broadcast, 7 receivers", wide, broadcastRow, fastOverCeilingWide)
	}
	// gleamd itself has no such row: it learns from the store what was forwarded, and groups
	// without local repair stay with its worker.
	if alone := r.find(noRepairRow, targetCase); alone != nil {
		r.ratio("fast path's program without the store / XDP broadcast", alone, broadcastRow, noStoreOverCeiling)
	}
	if long, x := r.find(fastRow, longCase), r.find(gleamdRow, longCase); long != nil && x != nil && x.CPU > 0 {
		r.add("CPU time per copy, fast path / gleamd, 4096 B", long.CPU/x.CPU, longFramesCPU, true)
	}
	fast := r.find(fastRow, targetCase)
	if fast == nil {
		return
	}
	r.ratio("fast path / XDP broadcast", fast, broadcastRow, fastOverCeiling)
	r.ratio("fast path / gleamd", fast, gleamdRow, fastOverGleamd)
	r.ratio("fast path / bridge multicast flood", fast, bridgeRow, fastOverBridge)
	if x := r.find(gleamdRow, targetCase); x != nil && x.CPU > 0 {
		r.add("CPU time per copy, fast path / gleamd", fast.CPU/x.CPU, fastCPU, true)
	}
	if x := r.find(fastAckRow, targetCase); x != nil {
		r.add("throughput of the fast path lost to ACKs of 3 receivers for every 8th packet", 1-ratioOf(x, fast), feedbackCost, true)
	}
	own := r.sparseLatency(fastRow)
	if own == nil {
		return
	}
	if x := r.sparseLatency(gleamdRow); x != nil {
		r.add("p99 latency at a frame every 200 µs, fast path / gleamd", own.P99/x.P99, fastLatency, true)
	}
	for _, to := range []struct{ row, name string }{{broadcastRow, "XDP broadcast"}, {bridgeRow, "bridge"}} {
		if x := r.sparseLatency(to.row); x != nil {
			r.add("p50 latency at a frame every 200 µs, fast path / "+to.name, own.P50/x.P50, fastLatencyOver, true)
			r.add("p99 latency at a frame every 200 µs, fast path / "+to.name, own.P99/x.P99, fastLatencyOver, true)
		}
	}
}

// sparseLatency is a row's latency where the worker sleeps from one frame to the next, nil
// if it was not measured.
func (r *Result) sparseLatency(name string) *Latency {
	for i := range r.Latency {
		if l := &r.Latency[i]; l.Name == name && l.Gap == float64(latencyGaps[0].Microseconds()) && l.P50 > 0 {
			return l
		}
	}
	return nil
}

// ratio adds a target about packets a second, as a share of those of another row in the
// same case.
func (r *Result) ratio(name string, own *Row, to string, bound float64) {
	x := r.find(to, benchCase{own.Payload, own.Legs})
	if x == nil {
		return
	}
	t := r.add(name, ratioOf(own, x), bound, false)
	if own.CPU > 0 {
		t.ByCPU = math.Round(x.CPU/own.CPU*1e3) / 1e3
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
	return stat.Median(v)
}

func (r *Result) add(name string, measured, bound float64, atMost bool) *Target {
	t := Target{Name: name, Measured: millionth(measured), Bound: bound, AtMost: atMost}
	if t.Met = t.Measured >= bound; atMost {
		t.Met = t.Measured <= bound
	}
	r.Targets = append(r.Targets, t)
	return &r.Targets[len(r.Targets)-1]
}
