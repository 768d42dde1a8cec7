// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to open and close the slots of ports.
var _ = []mutant.Mutant{
	mutant.New("a port that is opened again receives by no worker", "Ports", mutant.In((*workers).install,
		"p.rxSockets = append(p.rxSockets, s)",
		"_ = append(p.rxSockets, s)")),
	mutant.New("frames of closed sockets are lost", "Ports", mutant.In((*workers).reclaim,
		"w.frameSupply.reclaim(s)",
		"_, _ = w.frameSupply, s")),
	mutant.New("another worker's share of a closed port counts for ever", "Ports", mutant.In((*workers).install,
		"x.handedBytes = x.takenBytes.Load()",
		"x.handedBytes += 0 * x.takenBytes.Load()")),
	mutant.New("counters of a port begin again", "Ports", mutant.In((*workers).install,
		"p.ring.packets, p.maxPacketFrames, p.maxDepth = old.ring.packets, old.maxPacketFrames, old.maxDepth",
		"p.ring.packets, p.maxPacketFrames, p.maxDepth = old.ring.packets*0, old.maxPacketFrames, old.maxDepth")),
}
