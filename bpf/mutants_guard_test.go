// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// guardMutants are mistakes in the part of the port guard that is in Go.
var _ = []mutant.Mutant{
	mutant.New("group prefixes have all bits of their first one in common", "guard", mutant.In(add,
		"if d := bits.LeadingZeros64(*first ^ x); d < 64 {",
		"if d := bits.LeadingZeros64(*first ^ x); d < 0 {")),
	mutant.New("the bits that group prefixes have in common are those of the longest one", "guard", mutant.In(add,
		"*mask &= ^uint64(0) << (64 - n)",
		"*mask = ^uint64(0) << (64 - n)")),
	mutant.New("prefixes that a reload adds have the bits of the first ones in common", "SetPrefixes", mutant.In((*prefixes).replace,
		"c := x.common\nc.narrow(list)",
		"c := x.common\nc.narrow(nil)")),
	mutant.New("a prefix that a reload removes is still served", "SetPrefixes", mutant.In((*prefixes).replace,
		"return leave(maps, slices.DeleteFunc(former, func(p netip.Prefix) bool { return slices.Contains(list, p) }))",
		"return leave(maps, slices.DeleteFunc(former, func(p netip.Prefix) bool { return !slices.Contains(list, p) }))")),
}
