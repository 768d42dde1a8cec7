// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to look at the machine that the switch runs on.
var _ = []mutant.Mutant{
	mutant.New("link-local routes lead to members", "Check", mutant.In(leadsThrough,
		"if r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()) {",
		"if r.Dst != nil && r.Dst.IP.IsMulticast() {")),
	mutant.New("any route leads to members", "Check", mutant.In(leadsThrough,
		"if slices.Contains(interfaces, r.LinkIndex) {",
		"if r.LinkIndex > 0 {")),
	mutant.New("the switch's own address may be a group's", "Check", mutant.In((*hostNetwork).checkPrefix,
		"if p.Contains(net.Addr()) {",
		"if false {")),
	mutant.New("a subnet within a group prefix has no hosts", "PrefixOfHosts", mutant.In((*hostNetwork).checkHosts,
		"&& !net.IsSingleIP() && within(net.Masked(), p)",
		"&& !net.IsSingleIP() && within(p, net.Masked()) && net.Masked() != p")),
	mutant.New("neighbours are no hosts", "PrefixOfHosts", mutant.In((*hostNetwork).checkHosts,
		"n.State&known != 0 &&",
		"n.State&known == 0 &&")),
	mutant.New("every chain lets hosts through", "Forwarding", mutant.In(forwardChains,
		"ok && policy == verdictDrop",
		"ok && policy != verdictDrop")),
	mutant.New("headers need no room in the MTU", "Check", mutant.In(widest,
		"n := usualPMTU + rocev2.MaxHeaders(q.Addr().Is4())",
		"n := usualPMTU + 0*rocev2.MaxHeaders(q.Addr().Is4())")),
	mutant.New("every prefix is in a subnet of the ports", "Check", mutant.In((*hostNetwork).checkPrefix,
		"case !onLink:",
		"case !onLink && false:")),
}
