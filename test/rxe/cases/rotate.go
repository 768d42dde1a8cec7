// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// rotation makes every member the source in turn, two times over. All queue pairs were
// connected once, each with its own, different PSNs, and are not touched in between:
// the switch follows the source by itself.
func rotation(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024}
	return withGroup(ctx, &spec, func(g *group) error {
		before := g.pairs()
		for turn := range 2 * len(g.members) {
			g.from = turn % len(g.members)
			if err := g.transfer(ctx, mixed(5000, 0, 70000+turn)...); err != nil {
				return fmt.Errorf("turn %d, source host %d: %w", turn+1, g.source().index, err)
			}
		}
		for i, info := range g.pairs() {
			if info != before[i] {
				return fmt.Errorf("host %d: the queue pair was %+v and is %+v", g.members[i].index, before[i], info)
			}
		}
		return nil
	})
}

// pairs describes all members' queue pairs.
func (g *group) pairs() (all []endpoint.QPInfo) {
	for _, mb := range g.members {
		all = append(all, mb.qp.Info())
	}
	return all
}
