// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"

	"github.com/gleam-rdma/gleam/api"
)

// Costliest returns at most n of a group's members that have a Cost: those that slow it down first, then those that it
// has waited for longest. Of members that share a Cost, behind one neighbour switch, the first one stands for all.
func Costliest(g *api.Group, n int) (list []*api.Member, leftOut int) {
	seen := make(map[string]bool)
	for i := range g.Members {
		m := &g.Members[i]
		if m.Cost == nil || m.Switch != "" && seen[m.Switch] {
			continue
		}
		seen[m.Switch] = true
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b *api.Member) int {
		return cmp.Or(order(b.Slow != "")-order(a.Slow != ""), cmp.Compare(b.Cost.Waited, a.Cost.Waited))
	})
	n = min(n, len(list))
	return list[:n], len(list) - n
}

func order(first bool) int {
	if first {
		return 1
	}
	return 0
}
