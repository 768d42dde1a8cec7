// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"testing"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/test/xsktest"
)

// A socket on a veth behaves as the queue does that the data plane is tested with.
func TestConform(t *testing.T) {
	xsktest.Conform(t, func(t *testing.T, o xsktest.Options) *xsktest.Port {
		p := xsk.OpenVeth(t, o.Frames, o.FrameSize, o.Ring, o.MTU, o.MultiBuffer)
		return &xsktest.Port{
			Umem: p.Umem, Pool: p.Pool, Queue: p.Socket, Poller: p.Poller,
			Arrive: p.Arrive, Left: p.Left, SetUp: p.SetUp, Vanish: p.Vanish,
		}
	})
}
