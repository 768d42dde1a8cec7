// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import "github.com/gleam-rdma/gleam/rocev2"

// Stats count a device's frames and events. All counters only grow.
type Stats struct {
	RxFrames  uint64 // read from the socket
	RxBytes   uint64 // bytes of these frames, without FCS
	RxBatches uint64 // reads that gave at least one frame
	TxFrames  uint64 // accepted by the kernel
	TxBytes   uint64
	TxBatches uint64 // writes that sent at least one frame

	// Received frames that reached no queue pair, by reason.
	RxLoss      uint64 // Config.Loss, SetInboundLoss
	RxMalformed uint64 // refused by the decoder; Malformed says why
	RxOtherMAC  uint64 // frames for another Ethernet address
	RxOtherIP   uint64 // frames for another of the device's addresses than the queue pair's
	RxNoQP      uint64 // no such queue pair, or one not connected
	RxOtherPeer uint64 // frames of another sender than the queue pair's peer
	RxPKey      uint64 // frames of another partition than the default one
	RxBadICRC   uint64
	RxTruncated uint64 // longer than the interface's MTU allows
	Malformed   [rocev2.NumReasons]uint64

	// Frames that were not sent.
	TxLoss    uint64 // Config.Loss
	TxStalls  uint64 // times that the kernel had no room and the frames were retried later
	TxDropped uint64 // dropped after a stall of txTimeout, or with the interface down

	// Congestion, summed over all queue pairs; endpoint.QPStats has the counters of each.
	CEReceived   uint64 // frames for a queue pair that a switch had marked with CE
	BECNReceived uint64 // ACKs with BECN
	CNPsReceived uint64
	CNPsSent     uint64 // none without Config.Congestion

	NeighbourMoves uint64 // times that a peer had another Ethernet address than before

	SocketErrors uint64 // reads or writes that failed for another reason than a full queue
	TraceErrors  uint64 // frames that Config.Trace failed to write
}

// Stats returns the device's counters. After Close they no longer change.
func (d *Device) Stats() Stats {
	var s Stats
	if err := d.do(func() { s = d.loop.stats }); err != nil {
		<-d.done
		s = d.loop.stats
	}
	return s
}
