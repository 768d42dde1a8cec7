// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import "github.com/gleam-rdma/gleam/rocev2"

// Stats count what a device did. All counters only grow.
type Stats struct {
	RxFrames  uint64 // taken from the socket
	RxBytes   uint64 // of these, without FCS
	RxBatches uint64 // reads that gave at least one frame
	TxFrames  uint64 // handed to the kernel
	TxBytes   uint64
	TxBatches uint64 // writes that took at least one frame

	// Received frames that reached no queue pair, by reason.
	RxLoss      uint64 // Config.Loss, SetInboundLoss
	RxMalformed uint64 // refused by the decoder; Malformed says why
	RxOtherMAC  uint64 // for another Ethernet address
	RxOtherIP   uint64 // for another of our addresses than the queue pair's
	RxNoQP      uint64 // no such queue pair, or one not connected
	RxOtherPeer uint64 // not from the queue pair's peer
	RxPKey      uint64 // not the default partition
	RxBadICRC   uint64
	RxTruncated uint64 // longer than the interface's MTU allows
	Malformed   [rocev2.NumReasons]uint64

	// Frames that were not sent.
	TxLoss    uint64 // Config.Loss
	TxStalls  uint64 // times that the kernel had no room and sending was tried again later
	TxDropped uint64 // given up after a stall of txTimeout, or the interface was down

	// Congestion, of all queue pairs together; endpoint.QPStats has each one's.
	CEReceived   uint64 // frames for a queue pair that a switch had marked
	BECNReceived uint64 // ACKs with BECN
	CNPsReceived uint64
	CNPsSent     uint64 // none without Config.Congestion

	NeighbourMoves uint64 // times that a peer was found at another Ethernet address

	SocketErrors uint64 // reads or writes that failed for another reason than room
	TraceErrors  uint64 // frames that Config.Trace did not take
}

// Stats returns the device's counters. After Close they are the last ones.
func (d *Device) Stats() Stats {
	var s Stats
	if err := d.do(func() { s = d.loop.stats }); err != nil {
		<-d.done
		s = d.loop.stats
	}
	return s
}
