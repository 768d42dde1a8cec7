// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"math"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// percentile returns the least of sorted samples that num of 100 do not exceed,
// in microseconds; 0 if there are none.
func percentile(sorted []time.Duration, num int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := (len(sorted)*num+99)/100 - 1
	return float64(sorted[max(at, 0)]) / float64(time.Microsecond)
}

// summarize makes a row of a case's samples, one for each round. Goodputs are relative
// to the median of base, those of the loss-free case in the same rounds: the link
// bounds them, so that a single lower one shows the machine's load at that moment, and
// not loss.
func summarize(c lossCase, samples []sample, base []float64) Row {
	r := Row{
		Receivers: c.receivers, Mode: c.mode, Repair: c.repair, Loss: c.loss, Burst: c.burst,
		GoodputRatioMin: math.Inf(1), GoodputRatioMax: math.Inf(-1), BytesEqual: true,
	}
	var goodputs []float64
	var latencies []time.Duration
	whole := stat.Median(base)
	for _, m := range samples {
		ratio := m.goodput / whole
		goodputs = append(goodputs, m.goodput)
		r.GoodputRatioMin, r.GoodputRatioMax = min(r.GoodputRatioMin, ratio), max(r.GoodputRatioMax, ratio)
		r.SenderRetransmissions += m.sender.Retransmitted
		r.SenderTimeouts += m.sender.Timeouts
		r.SenderNAKs += m.sender.NAKs
		r.SenderRNRs += m.sender.RNRs
		r.HealthyExtraBytes += m.controlExtra
		r.Messages += m.messages
		r.Packets += m.packets
		r.LostPackets += m.lost
		r.StoreHighWater = max(r.StoreHighWater, m.store.peak)
		r.SwitchResent += m.store.resent
		r.SwitchNAKs += m.store.naks
		r.SwitchProbes += m.store.probes
		r.SwitchNotRetained += m.store.notRetained
		r.FastPackets += m.store.fast
		latencies = append(latencies, m.latencies...)
	}
	slices.Sort(latencies)
	r.Goodput = stat.Median(goodputs)
	r.GoodputRatio = r.Goodput / whole
	r.P50, r.P99 = percentile(latencies, 50), percentile(latencies, 99)
	return r
}
