// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to say what can be a port.
var _ = []mutant.Mutant{
	mutant.New("a bridge's address is not its ports'", "Above", mutant.In(Links.Above,
		`m.Type() == "bridge"`,
		`m.Type() == "bond"`)),
	mutant.New("a bond runs native XDP", "Kind", mutant.In(Links.ModeAt,
		"k.Mode == config.XDPGeneric",
		"k.Mode != config.XDPGeneric")),
	mutant.New("one interface is two ports", "Together", mutant.In(Links.CheckTogether,
		"case x == y:",
		"case x == y && false:")),
	mutant.New("a bridge is no interface over its ports", "Together", mutant.In(Links.isOver,
		"l.master(over[i]) == z ||",
		"l.master(over[i]) == z && false ||")),
}
