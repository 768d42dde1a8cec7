// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR89_FollowsDataThatWaitsForTheFile: a member that has the token may begin beside data of
// the last source that waits for the file, if that source has no token: its data is not
// forwarded before it has one. A message that was begun is finished first.
func TestR89_FollowsDataThatWaitsForTheFile(t *testing.T) {
	for _, c := range []struct {
		frozen, midMessage, want bool
	}{{false, false, false}, {true, false, true}, {true, true, false}} {
		g := &group{gates: awaitsFile}
		g.agg.acked, g.fwd.nxt = rocev2.PSNMask, 0
		g.fwd.midMessage = c.midMessage
		g.set(frozen, c.frozen)
		if got := (&tree{g: g}).mayFollow(); got != c.want {
			t.Errorf("frozen %v, in the middle of a message %v: %v", c.frozen, c.midMessage, got)
		}
	}
}
