// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to take up a port whose interface is made anew.
var _ = []mutant.Mutant{
	mutant.New("an interface that cannot be opened is tried without end", "Ports", mutant.In((*portLife).apply,
		"!another && now < l.retryAt",
		"!another && now < 0*l.retryAt")),
	mutant.New("retries of an interface do not become rarer", "Ports", mutant.In((*portLife).apply,
		"firstPortRetry<<min(l.refusals, 10)",
		"firstPortRetry<<min(0*l.refusals, 10)")),
	mutant.New("another interface of the name waits for the retry of the first", "Ports", mutant.In((*portLife).apply,
		"ifindex != l.ifindex",
		"ifindex != ifindex")),
	mutant.New("a port that is removed while it is opened stays", "Ports", mutant.In((*portLife).apply,
		"*l = portLife{}",
		"_ = portLife{}")),
	mutant.New("a port with members is removed unasked", "Ports", mutant.In((*reconfiguration).plan,
		"members > 0 && !r.force",
		"members < 0 && !r.force")),
	mutant.New("all queues are the same as any list", "SameSockets", mutant.In(sameSockets,
		"(a.Queues == nil) == (b.Queues == nil) &&",
		"a.Queues == nil || b.Queues == nil ||")),
	mutant.New("a prefix with groups is removed unasked", "ReconfigurePrefixes", mutant.In((*reconfiguration).planPrefixes,
		"len(groups) > 0 && !r.force",
		"len(groups) < 0 && !r.force")),
}
