// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostgroup gives tests of a running switch a group of the hosts of a star, whose
// transfers it verifies byte by byte.
package hostgroup

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
)

const (
	memory  = 1 << 20
	message = 16 << 10
	base    = 0x5000_0000_0000
	key     = 0xABCD
)

// Group is a group whose members are all hosts of a star.
type Group struct {
	Registration *api.Register

	hosts []*testbed.Host
	qps   []endpoint.QP
}

// New opens a queue pair at each host and registers their group at a switch.
func New(t *testing.T, star *lab.Star, client *api.Client) *Group {
	t.Helper()
	reg := &api.Register{Group: lab.StarGroupsIPv4.Addr().Next(), QPN: 0x4242, PMTU: 1024, Policy: "strict", Window: &api.Window{VA: base, Len: memory, RKey: key}}
	g := &Group{Registration: reg, hosts: bedtest.Open(t, star.Hosts, testbed.Endpoints{Memory: memory})}
	for _, h := range g.hosts {
		qp, err := h.Device.CreateQP(h.QPConfig())
		if err != nil {
			t.Fatal(err)
		}
		n := qp.Info()
		reg.Members = append(reg.Members, api.RegisterMember{
			IP: n.IP, QPN: api.QPN(n.QPN), SQPSN: api.PSN(n.SQPSN), RQPSN: api.PSN(n.RQPSN), Window: &api.Window{VA: h.Memory.Addr(), Len: memory, RKey: h.Memory.RKey()},
		})
		g.qps = append(g.qps, qp)
	}
	for _, qp := range g.qps {
		if err := qp.Connect(t.Context(), endpoint.Remote{IP: reg.Group, QPN: 0x4242, PathMTU: 1024, RQPSN: qp.Info().RQPSN}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	return g
}

// Pass writes the region of a host to the group, and checks at each completion that all
// hosts have its bytes. It returns the longest time between two completions.
func (g *Group) Pass(t *testing.T, from, round int) (gap time.Duration) {
	t.Helper()
	mr := g.hosts[from].Memory
	for i := range mr.Bytes() {
		mr.Bytes()[i] = byte(i>>8) ^ byte(i*13) ^ byte(round*31+1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	last, end := time.Now(), 0
	err := testbed.Writes(mr, message).Send(ctx, g.qps[from], mr, base, key, memory/message, func(n int) {
		now := time.Now()
		gap, last = max(gap, now.Sub(last)), now
		end += n
		for i, h := range g.hosts {
			if !bytes.Equal(h.Memory.Bytes()[:end], mr.Bytes()[:end]) {
				t.Fatalf("round %d: %d bytes are complete, and host %d does not have them", round, end, i)
			}
		}
	})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	return gap
}
