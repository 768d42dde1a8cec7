// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/mcast"
)

// Groups that stall come first, then those with most recent traffic; a pause of seconds does not
// change the order, and a new group under an ID does not inherit from the one before.
func TestBusiestGroupsAreChosen(t *testing.T) {
	var r ranking
	at := time.Unix(1000, 0)
	choose := func(later time.Duration, n int, bytes ...uint64) []mcast.GroupID {
		at = at.Add(later)
		var list []dataplane.GroupTraffic
		for i, b := range bytes {
			list = append(list, dataplane.GroupTraffic{ID: mcast.GroupID(i), Bytes: b})
		}
		return r.choose(at, list, n)
	}
	for i, c := range []struct {
		got, want []mcast.GroupID
	}{
		{choose(0, 2, 10, 30, 20), []mcast.GroupID{1, 2}},
		{choose(time.Second, 2, 10, 30, 1000), []mcast.GroupID{2, 1}},
		{choose(5*time.Second, 2, 500, 30, 1000), []mcast.GroupID{2, 0}}, // 2 pauses
		{choose(10*time.Minute, 1, 600, 30, 1000), []mcast.GroupID{0}},   // for long
		{choose(time.Second, 3, 600, 30, 10), []mcast.GroupID{0, 2, 1}},  // another group 2
		{choose(time.Second, 9, 600, 30), []mcast.GroupID{0, 1}},         // 2 is gone
		{choose(time.Second, 3, 600, 30, 1), []mcast.GroupID{0, 2, 1}},   // and one is there again
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("choice %d: %v, want %v", i, c.got, c.want)
		}
	}
	list := []dataplane.GroupTraffic{{ID: 0, Bytes: 1 << 30}, {ID: 1, Stalled: 2 * time.Second}, {ID: 2, Stalled: 900 * time.Millisecond}}
	if got := r.choose(at, list, 1); !slices.Equal(got, []mcast.GroupID{1}) {
		t.Errorf("with a stalled group: %v", got)
	}
}
