// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/dataplane"
	"github.com/gleam-rdma/gleam/internal/mcast"
)

// costOf returns the API's view of what a member has cost its group; nil if it has had nothing.
func costOf(c *mcast.Cost) *api.Cost {
	if !c.Receives && c.Total() == 0 && c.RTTp50 == 0 && c.NAKs == 0 && c.RNRNAKs == 0 && c.Probes == 0 {
		return nil
	}
	return &api.Cost{
		NAKs: c.NAKs, RNRNAKs: c.RNRNAKs, Repaired: c.Repaired, Probes: c.Probes,
		RTTp50: c.RTTp50.Seconds(), RTTp99: c.RTTp99.Seconds(), Waited: c.Total().Seconds(),
	}
}

// awaitedMember returns the member that a group's ACK waits for, if that says something: the group
// stalls, or it waits for one that is overdue while the others are not, or for one that costs it
// time. A member that is merely the last to acknowledge is none of these.
func awaitedMember(now *dataplane.GroupState) (m mcast.MemberID, ok bool) {
	if now.Delay.Kind == dataplane.Stalled {
		return now.Delay.Member, true
	}
	for i := range now.Costs {
		m = mcast.MemberID(i)
		if c := &now.Costs[i]; c.Overdue || c.Alone > 0 && now.Blamed.Blames(m) {
			return m, true
		}
	}
	return 0, false
}
