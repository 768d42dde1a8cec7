// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to take over what the control plane says of ports.
var _ = []mutant.Mutant{
	mutant.New("workers go by the old MTU", "Places", mutant.In((*Plane).SetMTU,
		"w.ports[pi].mtu = mtu",
		"w.ports[pi].mtu += 0 * mtu")),
	mutant.New("only one worker learns the MTU", "Places", mutant.In((*Plane).SetMTU,
		"w.disturbFast()\nw.ports[pi].mtu = mtu",
		"if w.$1 == 0 {\nw.ports[pi].mtu = mtu\n}", worker{}.index)),
	mutant.New("a packet of the control plane leaves by a worker that does not own its port", "Several workers", mutant.In((*Plane).transmit,
		"if p.workers.txWorker(port(i)) == k {",
		"if p.workers.txWorker(port(i)) >= 0*k && k == 0 {")),
}
