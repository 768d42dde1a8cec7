// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/api"
)

// treeConnect has members connect at the switch where their group was created, in a fabric of
// two: they transfer, and one at the other switch is refused.
func treeConnect(ctx context.Context, b *bench) error {
	here, away := []*host{b.hosts[0], b.hosts[2]}, b.hosts[1]
	return b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 2}, func(g *created) error {
		j, err := g.join(ctx, away, "receive", "1", "1")
		if err == nil {
			err = j.ends("rejected: reason 8,")
		}
		if err != nil {
			return err
		}
		return errors.Join(g.transfer(ctx, here, 40, 5000), g.vacant(ctx))
	})
}

// treeDial has listeners at the switch where their group was created, in a fabric of two. One at
// the other switch cannot answer: the dialler is refused, with that one's address.
func treeDial(ctx context.Context, b *bench) error {
	here, away := []*host{b.hosts[0], b.hosts[2]}, []*host{b.hosts[0], b.hosts[2], b.hosts[1]}
	err := b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false)}, here, func(g *created) error {
		return errors.Join(g.transferDialled(ctx, here, 40, 5000), g.unconnected(ctx))
	})
	return errors.Join(err, b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false), WaitMS: 3000}, away, func(g *created) error {
		all, err := g.dial(ctx, away, []string{"s1", "1"}, []string{"r1", "1"})
		if err == nil {
			err = all[0].ends(fmt.Sprintf("rejected: reason 28, code 4, 1 of 2 listeners have answered, %s:%d has not", b.hosts[1].addr4, cmPort))
		}
		all.kill()
		return errors.Join(err, g.unconnected(ctx))
	}))
}
