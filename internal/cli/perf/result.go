// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"net/netip"
	"time"
)

// Result is the outcome of a test; its JSON is the output of -o json.
type Result struct {
	Params
	Backend   string      `json:"backend"`
	Receivers int         `json:"receivers"`
	Group     *netip.Addr `json:"group,omitempty"` // the group of the first lane
	Sizes     []*Size     `json:"results"`
}

// Size is the outcome for one message size.
type Size struct {
	Bytes      int     `json:"bytes"`      // bytes of a message
	Iterations int     `json:"iterations"` // messages, of all lanes
	Seconds    float64 `json:"seconds"`    // the time until all receivers had the last message

	// All has the figures for the delivery to all receivers, measured by the sender. A
	// latency is that of the last receiver's answer.
	All Figures `json:"all"`
	// Completion is the latency of the completion at the sender, of the last one with
	// unicasts: RC has delivered the message to all receivers.
	Completion *Figures         `json:"completion,omitempty"`
	Receivers  []ReceiverResult `json:"receivers"`
	Turns      []Turn           `json:"turns,omitempty"` // Rotate
	// Pause is the longest time without a message that got through to all receivers, evicted ones aside.
	Pause   float64      `json:"longest_pause_seconds,omitempty"`
	Evicted []netip.Addr `json:"evicted,omitempty"` // receivers that the group has gone on without so far

	SenderLinkBytes uint64 `json:"sender_link_bytes,omitempty"` // frames sent by the sender's interface; 0: not known
	Retransmitted   uint64 `json:"sender_retransmitted_packets"`

	// With --dcqcn or --rate.
	CNPs uint64 `json:"sender_cnps,omitempty"`       // congestion notifications to the sender, BECN in ACKs included
	Rate int64  `json:"sender_rate_bit_s,omitempty"` // the rate of the sender's slowest queue pair at the end
}

// ReceiverResult is the outcome for one receiver.
type ReceiverResult struct {
	IP string `json:"ip"`
	Figures
}

// Turn is the outcome of a turn: all other members have the source's messages, verified.
type Turn struct {
	Source   string `json:"source"`
	Messages int    `json:"messages"`
	Bandwidth
}

// Figures are the figures of a test: of bandwidth, of latency, or of both and Writes.
type Figures struct {
	*Bandwidth
	*Latency
	*Writes
}

// Writes are the figures of replicated writes, beside their latency.
type Writes struct {
	IOPS float64 `json:"iops"` // writes a second that all replicas have
	MBs  float64 `json:"mb_s"` // the data of these writes, 10^6 bytes a second
}

// Bandwidth is in the units of perftest.
type Bandwidth struct {
	Peak float64 `json:"bw_peak_mib_s"` // 0: not known
	Avg  float64 `json:"bw_avg_mib_s"`
	Rate float64 `json:"msg_rate_mpps"`
}

// bandwidth converts rates in messages a second.
func bandwidth(size int, peak, avg float64) *Bandwidth {
	const mib = 1 << 20
	return &Bandwidth{Peak: peak * float64(size) / mib, Avg: avg * float64(size) / mib, Rate: avg / 1e6}
}

// sum computes the result of one size from the sender's rate, the receivers' results, and
// the samples of each lane.
func (s *sender) sum(size int, r rate, results []*result, lists []*samples) *Size {
	z := &Size{Bytes: size, Iterations: r.count, Seconds: r.seconds, Pause: r.pause}
	for i, c := range s.controls {
		z.Receivers = append(z.Receivers, ReceiverResult{IP: addrOf(c.conn.RemoteAddr()).String()})
		if !s.params.latency() {
			z.Receivers[i].Bandwidth = received(size, r, results[i])
		}
	}
	if !s.params.latency() {
		z.All.Bandwidth = bandwidth(size, r.peak, r.avg)
	}
	if s.params.replicates() {
		z.All.Writes = &Writes{IOPS: r.avg, MBs: r.avg * float64(size) / 1e6}
	}
	if lists == nil {
		return z
	}
	merge := func(of func(*samples) []time.Duration) *Latency {
		var all []time.Duration
		for _, l := range lists {
			all = append(all, of(l)...)
		}
		if len(all) == 0 {
			return nil
		}
		sum := summarize(all)
		return &sum
	}
	z.All.Latency = merge(func(x *samples) []time.Duration { return x.all })
	if t := merge(func(x *samples) []time.Duration { return x.completion }); t != nil {
		z.Completion = &Figures{Latency: t}
	}
	for i := range z.Receivers { // nothing of replicas
		z.Receivers[i].Latency = merge(func(x *samples) []time.Duration { return x.receiver[i] })
	}
	return z
}

// concurrently is the factor by which a receiver's time may be shorter than the sender's.
// A shorter time says nothing about the network: the receiver's program did not run, and
// then found the first and the last message, with 5000 in between, within some
// microseconds.
const concurrently = 4

// received is the bandwidth at a receiver. A receiver that found all messages at once, or
// only one, gets the sender's bandwidth.
func received(size int, r rate, res *result) *Bandwidth {
	if res == nil || res.Seconds <= r.seconds/concurrently || res.Counted <= 0 {
		return bandwidth(size, 0, r.avg)
	}
	return bandwidth(size, res.Peak, float64(res.Counted)/res.Seconds)
}
