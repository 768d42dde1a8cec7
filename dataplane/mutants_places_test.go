// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to take over what the control plane says of ports.
var _ = []mutant.Mutant{
	mutant.New("workers go by the old MTU", "Places", mutant.In((*Plane).SetMTU,
		"func(w *worker) { w.ports[pi].mtu = mtu }",
		"func(w *worker) { w.ports[pi].mtu += 0 * mtu }")),
	mutant.New("only one worker learns the MTU", "Places", mutant.In((*Plane).SetMTU,
		"if !p.workers.do(func(w *worker) { w.ports[pi].mtu = mtu }) {",
		"if !p.workers.$1[0].$2(func() { p.workers.$1[0].ports[pi].mtu = mtu }) {", workers{}.all, (*worker).do)),
	mutant.New("a packet of the control plane leaves by a worker that does not own its port", "Several workers", mutant.In((*Plane).transmit,
		"if p.workers.txWorker(port(i)) == k {",
		"if p.workers.txWorker(port(i)) >= 0*k && k == 0 {")),
}
