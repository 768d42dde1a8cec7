// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Worker is the load of one worker since gleamd started. Of its time, what is neither busy nor
// asleep is spent polling for packets.
type Worker struct {
	Worker  int     `json:"worker"`  // the worker's index, from 0
	CPU     int     `json:"cpu"`     // the CPU that the worker stays on; -1: any
	Seconds float64 `json:"seconds"` // the time since the worker started
	Busy    float64 `json:"busy"`    // the part of Seconds spent in batches with packets, or with work of the control plane
	Asleep  float64 `json:"asleep"`  // the part of Seconds spent asleep
	Paused  float64 `json:"paused"`  // the part of Seconds for which the worker was due and did not run
	Batches uint64  `json:"batches"` // batches with packets
	Packets uint64  `json:"packets"` // packets in these batches
	Groups  int     `json:"groups"`  // groups that belong to the worker
	Handoff Ring    `json:"handoff"` // packets from other workers that wait for it
}

// Queues are the queues between workers and control loop.
type Queues struct {
	Renewals Ring `json:"renewals"` // envelopes that extend leases
	Requests Ring `json:"requests"` // other envelopes, and messages of RDMA-CM
	Relays   Ring `json:"relays"`   // envelopes of neighbour switches
}

// Histogram has a number of measured values for each range of values. Those of Counts[i] are
// above Bounds[i-1], and not above Bounds[i]; the last ones, above all bounds.
type Histogram struct {
	Bounds []float64 `json:"bounds"` // seconds, ascending
	Counts []uint64  `json:"counts"` // one more than bounds
	Sum    float64   `json:"sum"`    // seconds, of all values
}

// Count returns how many values were measured.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Times are measured durations, in seconds.
type Times struct {
	// Registration is from the first envelope of a registration or update, or from the
	// operator's request, until the group is installed.
	Registration Histogram `json:"registration"`
	// Install is the part of a registration in which the group is set up at its worker.
	Install Histogram `json:"install"`
	// Stored is from an answer that promises something until it leaves, which is when the state file has it.
	Stored Histogram `json:"stored"`
	// ACK is from a packet's way out to the receivers until the source is sent the group's ACK
	// of it: one packet of a group at a time is measured.
	ACK Histogram `json:"ack"`
	// Stall is for how long a group's ACK did not advance although packets were outstanding, where
	// that was StallTime or more; it is counted when the stall has ended.
	Stall Histogram `json:"stall"`
}

// StallTime is the time in seconds without progress, with packets outstanding, from which on a
// group stalls.
const StallTime = 1

// SlowTime is the time in seconds over which it is found out which members cost their group time.
const SlowTime = 4

// SocketCounters count what the kernel did at an AF_XDP socket (XDP_STATISTICS).
type SocketCounters struct {
	RXDropped   uint64 `json:"rx_dropped"`    // packets too long for a frame, or lost for other reasons
	RXRingFull  uint64 `json:"rx_ring_full"`  // packets lost since the worker was late
	FillEmpty   uint64 `json:"fill_empty"`    // packets lost for want of a frame to receive into
	RXInvalid   uint64 `json:"rx_invalid"`    // entries of the fill ring that are none: a mistake in gleamd
	TXInvalid   uint64 `json:"tx_invalid"`    // entries of the TX ring that are none: a mistake in gleamd
	TXRingEmpty uint64 `json:"tx_ring_empty"` // times that the kernel looked for a packet to send, and found none
}

// Dropped returns how many packets were lost.
func (c *SocketCounters) Dropped() uint64 { return c.RXDropped + c.RXRingFull + c.FillEmpty }

// KernelCounters returns the sum of the counters of the port's sockets.
func (p *Port) KernelCounters() (sum SocketCounters) {
	for i := range p.Sockets {
		k := &p.Sockets[i].Kernel
		sum.RXDropped += k.RXDropped
		sum.RXRingFull += k.RXRingFull
		sum.FillEmpty += k.FillEmpty
		sum.RXInvalid += k.RXInvalid
		sum.TXInvalid += k.TXInvalid
		sum.TXRingEmpty += k.TXRingEmpty
	}
	return sum
}

// DeviceCounters are those that the kernel has of an interface, of all its packets.
type DeviceCounters struct {
	RXPackets  uint64 `json:"rx_packets"`
	TXPackets  uint64 `json:"tx_packets"`
	RXBytes    uint64 `json:"rx_bytes"`
	TXBytes    uint64 `json:"tx_bytes"`
	RXErrors   uint64 `json:"rx_errors"`
	TXErrors   uint64 `json:"tx_errors"`
	RXDropped  uint64 `json:"rx_dropped"`
	TXDropped  uint64 `json:"tx_dropped"`
	RXMissed   uint64 `json:"rx_missed"` // packets for which the NIC had no buffer
	RXOverruns uint64 `json:"rx_overruns"`
}
