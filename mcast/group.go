// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// none is the index of no member and of no leg.
const none = -1

// group is one group at this switch: what its parts share, and the parts. A part has its
// own file. What a packet touches lies together: it comes first, up to the first fields of
// numbering.
type group struct {
	ip   rocev2.AddrKey
	src  source
	agg  aggregation
	fwd  forwarding
	recv receivers

	qpn rocev2.QPN
	id  GroupID
	gates
	refusal  refusal
	policy   policyParams
	acks     []ackState // by LegID; nil before the group's first data
	legs     []leg      // by LegID
	sw       *Switch
	counters tally

	due    deadlines
	repair localRepair
	rtt    rttMeasurement
	live   liveness
	lag    lagLimit

	activity  []legActivity // by LegID; nil unless the group is active
	cost      *costs        // nil before the group's first data
	members   []member      // by MemberID
	byIP      memberIndex
	turn      turn
	numbering numbering
	storage   storage

	cnp        cnpFilter
	failure    failure
	generation uint64    // GroupSpec.Generation
	outcomes   *Outcomes // nil: none yet
	extra      *extra    // nil: it is empty
}
