// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gleam-rdma/gleam/api"
)

// connectRestart kills gleamd while a member waits for the others, and again when all are
// connected. The source sends before and after, and all leave as ever.
func connectRestart(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	return b.create(ctx, &api.CreateGroup{Group: groupAddr(9, false), Expect: 3}, func(g *created) error {
		var all peers
		defer func() { all.kill() }()
		for i, h := range hosts {
			steps := []string{"s10d20s10", "r10r10"}[min(i, 1)]
			j, err := start(ctx, h, "peer", "connect", g.ip.String(), fmt.Sprint(cmPort), steps, "3000", h.addr4.String())
			if err != nil {
				return err
			}
			all = append(all, j)
			if i > 0 {
				continue
			}
			err = g.waits(ctx)
			if err == nil {
				err = b.daemon.restart(ctx, true)
			}
			if err != nil {
				return err
			}
		}
		err := errors.Join(g.members(ctx, 3), all[0].prints(ctx, "10 messages of 3000 bytes sent"))
		if err == nil {
			err = b.daemon.restart(ctx, true)
		}
		if err == nil {
			err = g.members(ctx, 3)
		}
		if err != nil {
			return err
		}
		const sent, received = "10 messages of 3000 bytes sent\n", "10 messages of 3000 bytes received and compared\n"
		return errors.Join(all.end(sent+sent+"done", received+received+"done"), g.vacant(ctx))
	})
}

// dialRestart kills gleamd while a session is connected: both sides are disconnected, and the
// next programs are connected without another gleam group create.
func dialRestart(ctx context.Context, b *bench) error {
	hosts := b.hosts[:3]
	return b.dialling(ctx, &api.CreateGroup{Group: groupAddr(9, false)}, hosts, func(g *created) error {
		all, err := g.dial(ctx, hosts, []string{"s1", "100", "wait"}, []string{"r1", "100", "wait"})
		if err == nil {
			err = errors.Join(all[0].prints(ctx, "1 messages of 100 bytes sent"), g.members(ctx, 3))
		}
		if err == nil {
			err = b.daemon.restart(ctx, true)
		}
		if err != nil {
			all.kill()
			return err
		}
		err = all.end("RDMA_CM_EVENT_DISCONNECTED\ndone")
		return errors.Join(err, g.transferDialled(ctx, hosts, 40, 1000), g.unconnected(ctx))
	})
}
