// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to serve replies.
var _ = []mutant.Mutant{
	mutant.New("the leader's data keeps its PSNs", "R107", mutant.In((*group).serveReply,
		"psn.Add(int32(r.delta))", "psn.Add(int32(r.delta)*0)")),
	mutant.New("a follower's data goes to the source too", "R107", mutant.In((*group).serveReply,
		"if m.role == leads {", "if m.role >= leads {")),
	mutant.New("a follower's unverified data is acknowledged", "R107", mutant.In((*group).serveReply,
		"if !p.Verified {", "if false && !p.Verified {")),
	mutant.New("a follower's duplicate is not acknowledged", "R107", mutant.In((*group).serveReply,
		"if p.AckReq || d < 0 {", "if p.AckReq && d >= 0 {")),
	mutant.New("a follower's READ is acknowledged", "R107", mutant.In((*group).serveReply,
		"if f&(rocev2.OpSend|rocev2.OpWrite) == 0 {", "if f&(rocev2.OpSend|rocev2.OpWrite) == 0 && false {")),
	mutant.New("a follower's packets are all messages", "R107", mutant.In((*group).serveReply,
		"if f&rocev2.OpEnd != 0 {", "if f|rocev2.OpEnd != 0 {")),
	mutant.New("the source's acknowledgement of replies is believed unverified", "R107", mutant.In((*group).relayAnswer,
		"case !p.Verified:", "case !p.Verified && false:")),
	mutant.New("the source's acknowledgement of replies keeps its PSN", "R107", mutant.In((*group).relayAnswer,
		"psn := p.PSN.Add(-int32(r.delta))", "psn := p.PSN.Add(-int32(r.delta) * 0)")),
	mutant.New("the source's NAK of a reply is an ACK", "R107", mutant.In((*group).relayAnswer,
		"x.PSN, x.Syndrome, x.MSN = psn, p.Syndrome, p.MSN", "x.PSN, x.Syndrome, x.MSN = psn, 0x1F, p.MSN")),
	mutant.New("a group may have two leaders", "R107", mutant.In(checkReplies,
		"leaders != 1 ||", "leaders < 1 ||")),
}
