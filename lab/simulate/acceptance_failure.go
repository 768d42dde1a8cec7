// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"github.com/gleam-rdma/gleam/lab/sim/analytic"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// failureRows are the JCT of a broadcast during which a switch of its tree fails. Nothing comes from the
// failure until the new tree is installed: the time of detection, and two steps of the registration. What
// was on its way then is sent again.
func (all results) failureRows() (rows []acceptance) {
	const members, detect = 64, topology.Millisecond
	formula := ms(analytic.Group(paperPath, volume) + detect + analytic.Rebuild(paperPath, members) + paperPath.RTT())
	for _, x := range []struct{ node, name string }{{"c16", "a core"}, {"a1-2", "a pod's upper switch"}} {
		rows = append(rows, acceptance{"broadcast to 64 during which " + x.name + " fails, JCT", "-", all.jct("failure", "failed", x.node), formula, formula * 0.8, formula * 1.2, "ms", formula / 50})
	}
	return rows
}
