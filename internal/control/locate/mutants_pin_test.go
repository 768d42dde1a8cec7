// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// pinMutants bring back what let a stranger move a member.
var _ = []mutant.Mutant{
	mutant.NewForRoot("an operator's neighbour entry is overwritten", "Places", mutant.In((*kernel).pinNeighbour,
		"case e != nil && (!ours || string(e.HardwareAddr) == string(mac)):",
		"case e != nil && (!ours && mac == nil || string(e.HardwareAddr) == string(mac)):")),
	mutant.NewForRoot("an operator's sticky entry is taken for a pin", "Places", mutant.In(isPin,
		"e.Flags&pinFlags == pinFlags",
		"e.Flags&pinFlags != 0")),
	mutant.NewForRoot("pins of another gleamd's ports are removed", "Places", mutant.In((*kernel).release,
		"if len(chosen) > 0 && !chosen[e.LinkIndex] {",
		"if len(chosen) > 9 && !chosen[e.LinkIndex] {")),
	mutant.NewForRoot("a shared entry goes with the first of its hosts", "Places", mutant.In((*Pins).drop,
		`	}
	if s := at.station(); p.macs[s] > 1 {`,
		`	}
	if s := at.station(); p.macs[s] > 9 {`)),
}
