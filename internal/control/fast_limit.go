// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
)

// neverFast returns why a group could never take the fast path as it is registered, where the
// configuration demands it of every group (fast_path: require); nil otherwise. places are
// those of the members of fresh, who are new here. What may change while the group lives, as
// a port's rate or peer, is no reason.
func (d *directory) neverFast(r, fresh *envelope.Registration, places []locate.Location) *envelope.Problem {
	if !d.defaults.fastRequired {
		return nil
	}
	limited := func(l envelope.FastLimit, m envelope.MemberKey) *envelope.Problem {
		return &envelope.Problem{Reason: envelope.NeverFast, Member: m, Value: uint64(l)}
	}
	switch {
	case r.NoRepair:
		return limited(envelope.FastRepair, envelope.MemberKey{})
	case r.TargetKey != 0:
		return limited(envelope.FastTargets, envelope.MemberKey{})
	case countLegs(r)-1 > fastpath.MaxGroupLegs:
		return limited(envelope.FastReceivers, envelope.MemberKey{})
	}
	behind := make(map[int]int)
	for i := range places {
		pi := d.plane.PortIndex(places[i].Ifindex)
		if pi < 0 {
			continue
		}
		if x := d.ports[pi].Program; x != nil && !x.Forwards() {
			return limited(envelope.FastPort, fresh.Members[i].Key())
		}
		if behind[pi]++; behind[pi] > fastpath.MaxPortLegs+1 { // one of them may be the source
			return limited(envelope.FastReceivers, fresh.Members[i].Key())
		}
	}
	return nil
}

// countLegs returns the number of legs that a registration has here: one for each member here,
// and one for each neighbour with others behind it.
func countLegs(r *envelope.Registration) (n int) {
	neighbours := make(map[mcast.Neighbor]bool)
	for i := range r.Members {
		if to := r.Tree.Leg(i); to == envelope.NoNeighbour {
			n++
		} else {
			neighbours[to] = true
		}
	}
	return n + len(neighbours)
}
