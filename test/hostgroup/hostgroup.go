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
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
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
	hosts        []host
}

type host struct {
	qp endpoint.QP
	mr endpoint.MR
}

// New opens a queue pair at each host and registers their group at a switch.
func New(t *testing.T, star *lab.Star, client *api.Client) *Group {
	t.Helper()
	reg := &api.Register{Group: lab.StarGroupsIPv4.Addr().Next(), QPN: 0x4242, PMTU: 1024, Policy: "strict", Window: &api.Window{VA: base, Len: memory, RKey: key}}
	g := &Group{Registration: reg}
	for i, h := range star.Hosts {
		var dev *soft.Device
		if err := h.NS.Do(func() (err error) {
			dev, err = soft.Open(soft.Config{Interface: h.Interface, Seed: uint64(i)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		mr, err := dev.RegisterMemory(make([]byte, memory), 0x7000_0000_0000+uint64(i)<<32, endpoint.LocalWrite|endpoint.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		qp, err := dev.CreateQP(endpoint.QPConfig{LocalIP: h.IPv4, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(), MaxSend: 128, Timeout: 14, RetryCount: 7, RNRRetry: 7})
		if err != nil {
			t.Fatal(err)
		}
		n := qp.Info()
		reg.Members = append(reg.Members, api.RegisterMember{
			IP: n.IP, QPN: api.QPN(n.QPN), SQPSN: api.PSN(n.SQPSN), RQPSN: api.PSN(n.RQPSN), Window: &api.Window{VA: mr.Addr(), Len: memory, RKey: mr.RKey()},
		})
		g.hosts = append(g.hosts, host{qp, mr})
	}
	for i := range g.hosts {
		if err := g.hosts[i].qp.Connect(t.Context(), endpoint.Remote{IP: reg.Group, QPN: 0x4242, PathMTU: 1024, RQPSN: g.hosts[i].qp.Info().RQPSN}); err != nil {
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
	h := &g.hosts[from]
	for i := range h.mr.Bytes() {
		h.mr.Bytes()[i] = byte(i>>8) ^ byte(i*13) ^ byte(round*31+1)
	}
	n := memory / message
	for m := range n {
		off := m * message
		if _, err := h.qp.PostSend(endpoint.SendWR{
			ID: uint64(m), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: message}, RemoteAddr: base + uint64(off), RKey: key,
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	last := time.Now()
	var wc [16]endpoint.Completion
	for got := 0; got < n; {
		k, err := h.qp.Poll(ctx, wc[:])
		if err != nil {
			t.Fatalf("round %d: %d of %d completions: %v", round, got, n, err)
		}
		now := time.Now()
		gap, last = max(gap, now.Sub(last)), now
		for _, c := range wc[:k] {
			if c.Err() != nil {
				t.Fatalf("round %d: message %d: %v", round, c.ID, c.Err())
			}
			got++
		}
		for i := range g.hosts {
			if end := got * message; !bytes.Equal(g.hosts[i].mr.Bytes()[:end], h.mr.Bytes()[:end]) {
				t.Fatalf("round %d: %d messages are complete, and host %d does not have their bytes", round, got, i)
			}
		}
	}
	return gap
}
