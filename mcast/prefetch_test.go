// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast_test

import (
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
)

// TestPrefetchOfUnknownGroups: a driver may be told of a group that is not there any more.
func TestPrefetchOfUnknownGroups(t *testing.T) {
	s := mcast.New(mcast.Limits{})
	for _, feedback := range []bool{false, true} {
		if sum := s.Group(7).Prefetch() + s.Group(7).PrefetchParts(feedback); sum != 0 {
			t.Errorf("Prefetch of a group that is not there: %d; want 0", sum)
		}
	}
}
