// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Cost is what a member has cost its group since it joined. Members behind one neighbour switch
// share a Cost, which is that of all of them: the switch there has each one's own. A restart of
// gleamd begins it anew.
type Cost struct {
	NAKs     uint64  `json:"naks"`     // sequence NAKs that it has sent: packets to it were lost
	RNRNAKs  uint64  `json:"rnr_naks"` // RNR NAKs that it has sent: it had no receive posted
	Repaired uint64  `json:"repaired"` // packets sent to it again from packet memory
	Probes   uint64  `json:"probes"`   // probes to it after its acknowledgement was overdue
	RTTp50   float64 `json:"rtt_p50"`  // round trip in seconds; 0: not measured
	RTTp99   float64 `json:"rtt_p99"`
	Waited   float64 `json:"waited"` // seconds for which the group's ACK waited for it beyond the others
}

// Causes for which a member costs its group time: values of Member.Slow and Group.SlowCause.
const (
	SlowLoss     = "loss"      // losses of packets to the member, which are sent again
	SlowNotReady = "not ready" // RNR NAKs: the member has no receive posted
	SlowNoAnswer = "no answer" // silence of the member, also to probes
	SlowLink     = "slow link" // a link to the member that is slower than the source
	SlowPath     = "path"      // a round trip far longer than those of the other members
)
