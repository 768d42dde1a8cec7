// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/gleam-rdma/gleam/endpoint"
)

// allCases are the lines of the table.
func allCases() []testCase {
	var cs []testCase
	cs = append(cs, shapes()...)
	return cs
}

var dataOps = []endpoint.WROp{endpoint.Send, endpoint.Write, endpoint.WriteImm}

// withGroup runs do with a group of its own.
func withGroup(ctx context.Context, spec *groupSpec, do func(*group) error) error {
	g, err := newGroup(ctx, spec)
	if err != nil {
		return err
	}
	return errors.Join(do(g), g.close())
}

// shapes are groups of all sizes, families and path MTUs, with messages of all
// kinds and lengths. Nine of the eighteen have each pair of these once.
func shapes() (cs []testCase) {
	mtus := []int{256, 1024, 2048}
	for i, mtu := range mtus {
		for j, n := range []int{2, 4, 7} {
			for _, v6 := range []bool{false, true} {
				spec := groupSpec{number: 1, v6: v6, mtu: mtu}
				spec.hosts = make([]*host, n+1) // for its name
				cs = append(cs, testCase{
					name: "SEND, WRITE, WRITE_IMM: " + spec.String(),
					long: v6 != ((i+j)%2 == 1),
					run: func(ctx context.Context, b *bench) error {
						s := spec
						s.hosts = b.hosts[:n+1]
						return withGroup(ctx, &s, func(g *group) error {
							var msgs []message
							for _, op := range dataOps {
								for _, size := range []int{0, 1, 1 << 20} {
									msgs = append(msgs, message{op, size})
								}
							}
							return g.transfer(ctx, msgs...)
						})
					},
				})
			}
		}
	}
	return cs
}
