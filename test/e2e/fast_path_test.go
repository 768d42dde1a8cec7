// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
)

// newFastRig is newRig with the fast path on, and hosts that take redirected frames.
func newFastRig(t *testing.T, c rigConfig) *rig {
	c.config += "fast_path: auto\n"
	c.star.Redirects = true
	return newRig(t, c)
}

// way returns the way of the group's data.
func (r *rig) way() *api.FastPath {
	r.t.Helper()
	g, err := r.engine.Group(r.group)
	if err != nil {
		r.t.Fatal(err)
	}
	if g.FastPath == nil {
		r.t.Fatal("the group says nothing of the fast path, which is on")
	}
	return g.FastPath
}

// onFastPath has host from write until XDP has replicated some hundred packets of these
// writes, and compares all bytes each time. Each write has other bytes.
func (r *rig) onFastPath(from, message int) {
	r.t.Helper()
	const enough = 500
	seed, before := [32]byte{byte(from)}, r.way().Packets
	for try := range 60 {
		seed[1] = byte(try + 1)
		_, _ = rand.NewChaCha8(seed).Read(r.hosts[from].mr.Bytes())
		r.write(from, message)
		if r.same(from); r.t.Failed() {
			r.t.FailNow()
		}
		if fast := r.way().Packets - before; fast >= enough {
			r.t.Logf("source %s: %d packets by XDP in %d writes", r.hosts[from].Name, fast, try+1)
			return
		}
	}
	r.t.Fatalf("XDP replicates too few packets: %+v\nports: %+v", r.way(), r.ports())
}

// The data of a group takes the fast path, all of it is right, and what the API counts fits
// together.
func TestFastPath(t *testing.T) {
	for name, c := range map[string]rigConfig{
		"IPv4":             {star: lab.StarConfig{Hosts: 4}},
		"IPv6":             {star: lab.StarConfig{Hosts: 3}, v6: true},
		"routed ports":     {star: lab.StarConfig{Hosts: 3, NoBridge: true}},
		"five behind one":  {star: lab.StarConfig{Hosts: 7, Rack: 5}},
		"path MTU 2048":    {star: lab.StarConfig{Hosts: 3, MTU: 2200}, pathMTU: 2048},
		"path MTU 4096":    {star: lab.StarConfig{Hosts: 4, MTU: 4200}, pathMTU: 4096},
		"4096 by IPv6":     {star: lab.StarConfig{Hosts: 3, MTU: 9000}, v6: true, pathMTU: 4096},
		"4096 with loss":   {star: lab.StarConfig{Hosts: 4, MTU: 4200}, pathMTU: 4096, device: func(_ int, c *soft.Config) { c.Loss = 0.005 }},
		"several workers":  {star: lab.StarConfig{Hosts: 4}, workers: 3},
		"with loss":        {star: lab.StarConfig{Hosts: 4}, device: func(_ int, c *soft.Config) { c.Loss = 0.005 }},
		"evicting members": {star: lab.StarConfig{Hosts: 4}, policy: "evict"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFastRig(t, c)
			r.join()
			if w := r.way(); w.Way == api.WayFast || w.Word != "idle" || w.Reason == "" || w.Remedy == "" || w.Since.IsZero() {
				t.Errorf("before there is data: %+v", w)
			}
			r.onFastPath(0, 100_000)
			w, s := r.way(), r.stats()
			if w.Grants == 0 || w.Ring == 0 || w.Copies < w.Packets || w.Copies > s.Copies || w.Packets > s.Rx {
				t.Errorf("%+v; of all groups %d packets, %d copies", w, s.Rx, s.Copies)
			}
			var sent, fast uint64
			for _, p := range r.ports() {
				if p.FastPath == nil {
					t.Fatalf("port %s says nothing of the fast path", p.Name)
				}
				sent += p.FastPath.Sent
				fast += p.XDP[bpf.FastRoCEv2.String()]
				if !p.FastPath.Used || p.FastPath.Reason != "" {
					t.Errorf("port %s: %+v", p.Name, p.FastPath)
				}
			}
			if sent == 0 || fast < w.Packets {
				t.Errorf("%d copies are counted at the ports, and %d packets; of the group %+v", sent, fast, w)
			}
		})
	}
}

// Every member has the fast path when it is the source.
func TestFastPathFollowsTheSource(t *testing.T) {
	r := newFastRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	r.join()
	for _, from := range []int{0, 1, 2, 0} {
		r.onFastPath(from, 50_000)
	}
	if w := r.way(); w.Grants < 4 || w.Revokes < 3 {
		t.Errorf("after four turns: %+v", w)
	}
}

// A receiver that dies on the fast path is evicted, and the others have all bytes.
func TestFastPathKill(t *testing.T) {
	r := newFastRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, policy: "evict"})
	r.connect()
	reg := r.registration()
	reg.DeadAfterMS = 300
	if err := r.engine.Register(reg); err != nil {
		t.Fatal(err)
	}
	r.onFastPath(0, 100_000)
	r.hosts[2].dev.Close()
	want := r.hosts[0].mr.Bytes()
	want[0] ^= 0xFF
	r.write(0, 100_000)
	for _, i := range []int{1, 3} {
		if !bytes.Equal(r.hosts[i].mr.Bytes(), want) {
			t.Errorf("%s does not have the bytes", r.hosts[i].Name)
		}
	}
	until(t, "eviction", func() bool { return r.said("true member evicted") })
	r.hosts = slices.Delete(r.hosts, 2, 3)
	r.onFastPath(0, 100_000)
}

// A group with a receiver that takes no redirected frames stays with the worker, and loses
// nothing; the port, the group and the log say why. Once the receiver takes them, the group is
// on the fast path.
func TestFastPathWithoutGRO(t *testing.T) {
	r := newFastRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, prepare: func(s *lab.Star, config string) string {
		if err := s.Hosts[2].NS.SetFeature(s.Hosts[2].Interface, lab.GRO, false); err != nil {
			panic(err)
		}
		return config
	}})
	r.join()
	r.fill(0)
	for range 3 {
		r.hosts[0].mr.Bytes()[0]++
		r.write(0, 100_000)
		r.same(0)
	}
	const reason = "the veth's peer takes no redirected frames: turn on GRO"
	w, p := r.way(), r.ports()[2].FastPath
	if w.Way != api.WaySlow || w.Packets != 0 || w.Word != "redirects" || !strings.Contains(w.Reason, "port p3: the veth's peer takes no redirected frames") || !strings.Contains(w.Remedy, "turn on GRO") {
		t.Errorf("the group: %+v", w)
	}
	if p.Used || !strings.Contains(p.Reason, reason) {
		t.Errorf("the port: %+v", p)
	}
	if !r.said("false port is off the fast path [port p3") || r.said("true its peer takes no redirected frames") {
		t.Error("the log does not say so, or says it twice")
	}
	h := r.hosts[2]
	if err := h.NS.SetFeature(h.Interface, lab.GRO, true); err != nil {
		t.Fatal(err)
	}
	until(t, "the port is used again", func() bool {
		return r.ports()[2].FastPath.Used && r.said("false port is on the fast path again [port p3")
	})
	r.onFastPath(0, 100_000)

	// And off again while data flows.
	if err := h.NS.SetFeature(h.Interface, lab.GRO, false); err != nil {
		t.Fatal(err)
	}
	for r.way().Word != "redirects" {
		r.hosts[0].mr.Bytes()[0]++
		r.write(0, 100_000)
		r.same(0)
	}
}

// With fast_path: require a group that could never take the fast path is rejected.
func TestFastPathRequired(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3, Redirects: true}, config: "fast_path: require\n", alone: true})
	r.connect()
	reg := r.registration()
	if err := r.engine.Register(reg); err == nil || !strings.Contains(err.Error(), "fast_path: require") || !strings.Contains(err.Error(), "local repair") {
		t.Errorf("without repair: %v", err)
	}
	reg.NoRepair = false
	if err := r.engine.Register(reg); err != nil {
		t.Fatal(err)
	}
	r.onFastPath(0, 100_000)
}

// ECN thresholds that an operator has set keep groups off the fast path, whose copies are not
// marked, and the group says so.
func TestFastPathWithECN(t *testing.T) {
	r := newFastRig(t, rigConfig{star: lab.StarConfig{Hosts: 2}, ports: map[string]string{"p2": "ecn: {kmin: 4096, kmax: 8192, pmax: 1}"}})
	r.join()
	r.fill(0)
	r.write(0, 100_000)
	r.same(0)
	const reason = "port p2 has ECN thresholds"
	if w := r.way(); w.Way != api.WaySlow || w.Packets != 0 || !strings.Contains(w.Reason, reason) {
		t.Errorf("the group: %+v", w)
	}
	if !r.said("it has ECN thresholds") {
		t.Error("the log does not say so")
	}
}

// Groups whose packets are in several buffers are accepted where the fast path is required, and take it: sources
// take turns.
func TestFastPathRequiredWithLongFrames(t *testing.T) {
	c := rigConfig{star: lab.StarConfig{Hosts: 3, MTU: 4200, Redirects: true}, pathMTU: 4096, config: "fast_path: require\n"}
	r := newRig(t, c)
	r.join()
	for from := range r.hosts {
		r.onFastPath(from, 1_000_000)
	}
	if p := r.ports()[0].FastPath; !p.Used || p.Reason != "" || p.Sent == 0 {
		t.Errorf("the port: %+v", p)
	}
}
