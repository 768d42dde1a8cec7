// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gleam-rdma/gleam/api"
)

// connectAway cuts the link of a receiver in mid-transfer: the others go on without it. Then its
// program is started again, connects with another queue pair and receives what is sent from then on.
func connectAway(policy string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) (err error) {
		hosts := b.hosts[:4]
		away := hosts[3]
		spec := &api.CreateGroup{Group: groupAddr(9, false), Expect: 4, Policy: policy, DeadAfterMS: 3000} // more than the sender's ACK timeout
		isCut := false
		defer func() {
			if isCut {
				err = errors.Join(err, away.heal())
			}
		}()
		return b.create(ctx, spec, func(g *created) error {
			const size = "3000"
			in, more, err := os.Pipe()
			if err != nil {
				return err
			}
			defer in.Close()
			defer more.Close()
			connect := func(in io.Reader, h *host, steps string) (*joiner, error) {
				return startWith(ctx, in, h, "peer", "connect", g.ip.String(), fmt.Sprint(cmPort), steps, size, h.addr4.String())
			}
			var all peers
			defer func() { all.kill() }()
			for i, h := range hosts {
				steps, from := "r10r10r10", io.Reader(nil)
				if i == 0 {
					steps, from = "p1s10p1s10p1s10", in
				}
				j, err := connect(from, h, steps)
				if err != nil {
					return err
				}
				all = append(all, j)
			}
			send := func() error {
				_, err := io.WriteString(more, "\n")
				return err
			}
			received := func(j *joiner) error { return j.prints(ctx, "10 messages of 3000 bytes received and compared") }
			if err := errors.Join(g.ready(ctx, 4), send(), received(all[3])); err != nil {
				return err
			}
			isCut = true
			if err := errors.Join(away.lose("100%", "100%"), send(), g.members(ctx, 3), all[3].Process.Kill()); err != nil {
				return err
			}
			isCut = false
			if err := away.heal(); err != nil {
				return err
			}
			all[3].ended()
			if all[3], err = connect(nil, away, "r10"); err != nil {
				return err
			}
			if err := errors.Join(g.ready(ctx, 4), send()); err != nil {
				return err
			}
			const sent, got = "10 messages of 3000 bytes sent\n", "10 messages of 3000 bytes received and compared\n"
			return all.end(sent+sent+sent+"done", got+got+got+"done", got+got+got+"done", "connected\n"+got+"done")
		})
	}
}

// ready waits until the group has n members, and all but the source have shown which PSN they
// expect: under a quorum messages do not wait for that (R53).
func (g *created) ready(ctx context.Context, n int) error {
	return until(ctx, fmt.Sprintf("the group has %d members that receive", n), func() (bool, error) {
		s, err := g.b.daemon.client.Group(ctx, g.ip)
		if err != nil || len(s.Members) != n {
			return false, nil
		}
		for i := range s.Members {
			if s.Members[i].Diagnosis != "" {
				return false, nil
			}
		}
		return true, nil
	})
}
