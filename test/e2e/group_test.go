// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
)

// The main job, registered by hand: B, C and D have all bytes that A writes when A's
// last completion comes.
func TestWriteReachesAll(t *testing.T) {
	for name, c := range map[string]rigConfig{
		"IPv4":            {star: lab.StarConfig{Hosts: 4}},
		"IPv6":            {star: lab.StarConfig{Hosts: 4}, v6: true},
		"routed ports":    {star: lab.StarConfig{Hosts: 3, NoBridge: true}},
		"path MTU 256":    {star: lab.StarConfig{Hosts: 2}, pathMTU: 256},
		"path MTU 2048":   {star: lab.StarConfig{Hosts: 3, MTU: 2200}, pathMTU: 2048},
		"one-armed rack":  {star: lab.StarConfig{Hosts: 5, Rack: 5}},
		"five behind one": {star: lab.StarConfig{Hosts: 7, Rack: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c)
			r.join()
			r.fill(0)
			r.write(0, 100_000)
			r.same(0)
			s := r.stats()
			packets := uint64((r.hosts[0].mr.Len() + r.c.pathMTU - 1) / r.c.pathMTU)
			if want := packets * uint64(len(r.hosts)-1); s.Rx < packets || s.Copies < want {
				t.Errorf("%d packets in, %d copies out, want at least %d and %d", s.Rx, s.Copies, packets, want)
			}
		})
	}
}

// 1 % loss at every host in both directions: all bytes arrive, one completion
// for each message.
func TestLoss(t *testing.T) {
	r := newRig(t, rigConfig{
		star:   lab.StarConfig{Hosts: 4},
		device: func(_ int, c *soft.Config) { c.Loss = 0.01 },
	})
	r.join()
	r.fill(0)
	r.write(0, 20_000)
	r.same(0)
}
