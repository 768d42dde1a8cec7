// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
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

// costsSince returns what the members of now have cost their group since was, an earlier state of it; nil: since
// they joined.
func costsSince(was, now *api.Group) (list []api.TraceCost) {
	key := func(m *api.Member) envelope.MemberKey {
		return envelope.MemberKey{IP: m.IP, QPN: rocev2.QPN(m.QPN)}
	}
	before := make(map[envelope.MemberKey]*api.Cost)
	if was != nil {
		for i := range was.Members {
			before[key(&was.Members[i])] = was.Members[i].Cost
		}
	}
	for i := range now.Members {
		m := &now.Members[i]
		if m.Cost == nil {
			continue
		}
		cost := *m.Cost
		if b := before[key(m)]; b != nil {
			cost = costSince(*b, cost)
		}
		list = append(list, api.TraceCost{Member: m.IP, Switch: m.Switch, Cost: cost})
	}
	return list
}

// costSince returns what a member has cost from was to now. Counts that are below the earlier ones
// have begun anew.
func costSince(was, now api.Cost) api.Cost {
	if now.NAKs < was.NAKs || now.RNRNAKs < was.RNRNAKs || now.Repaired < was.Repaired || now.Probes < was.Probes || now.Waited < was.Waited {
		return now
	}
	now.NAKs -= was.NAKs
	now.RNRNAKs -= was.RNRNAKs
	now.Repaired -= was.Repaired
	now.Probes -= was.Probes
	now.Waited -= was.Waited
	return now
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
