// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Types of packages that other modules cannot import.
type (
	Personality = rc.Personality // which queue pairs a device behaves like
	Congestion  = dcqcn.Config   // parameters of DCQCN
	MAC         = rocev2.MAC     // Ethernet address
)

// Personalities. docs/RC.md §11 has the traits of those of RNICs.
const (
	RXE            = rc.RXE            // Linux soft-RoCE
	Strict         = rc.Strict         // hardware that checks all that IBTA has a queue pair check
	ConnectX       = rc.ConnectX       // mlx5 as it is delivered
	ConnectXExact  = rc.ConnectXExact  // mlx5 without adaptive retransmission
	ConnectXRepeat = rc.ConnectXRepeat // mlx5 with selective repeat and out-of-order placement
	IRDMA          = rc.IRDMA          // Intel E810
	EachPacket     = rc.EachPacket     // a requester that asks for an ACK with each packet
	Mthca          = rc.Mthca          // a requester that asks with each 1024th
)
