// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
)

// A gleamd that has given up its privileges still takes a port off the fast path, and on
// again, and drives the groups on it.
func TestFastPathOfTheDaemon(t *testing.T) {
	d := newDaemon(t, 3)
	gro := func(host int, on bool) {
		t.Helper()
		h := d.star.Hosts[host]
		if err := h.NS.SetFeature(h.Interface, lab.GRO, on); err != nil {
			t.Fatal(err)
		}
	}
	for i, on := range []bool{true, true, false} {
		gro(i, on)
	}
	p := d.start(t, d.config+"fast_path: auto\n", nil)
	client := d.ready(t, p)
	port := func(name string) *api.PortFastPath {
		t.Helper()
		ports, err := client.Ports(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(ports, func(p api.Port) bool { return p.Name == name })
		if i < 0 || ports[i].FastPath == nil {
			t.Fatalf("port %s: %+v", name, ports)
		}
		return ports[i].FastPath
	}
	if x := port("p1"); !x.Used {
		t.Errorf("p1: %+v", x)
	}
	if x := port("p3"); x.Used || !strings.Contains(x.Reason, "GRO") {
		t.Errorf("p3: %+v", x)
	}
	gro(2, true)
	until(t, "p3 is used", func() bool { return port("p3").Used })

	r := d.register(t, client, 1<<20)
	way := func() *api.FastPath {
		t.Helper()
		g, err := client.Group(t.Context(), r.group)
		if err != nil || g.FastPath == nil {
			t.Fatalf("%+v, %v", g, err)
		}
		return g.FastPath
	}
	round := func() {
		t.Helper()
		r.hosts[0].mr.Bytes()[0]++
		wc := make([]endpoint.Completion, 16)
		for n := r.post(0, 100_000); n > 0; {
			k, err := r.hosts[0].qp.Poll(t.Context(), wc)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range wc[:k] {
				if c.Err() != nil {
					t.Fatal(c.Err())
				}
			}
			n -= k
		}
		if r.same(0); t.Failed() {
			t.FailNow()
		}
	}
	for range 60 {
		if round(); way().Packets >= 500 {
			break
		}
	}
	if w := way(); w.Packets < 500 || port("p3").Sent == 0 {
		t.Fatalf("XDP replicates too few packets: %+v; p3: %+v", w, port("p3"))
	}

	gro(2, false)
	until(t, "p3 is not used", func() bool { return !port("p3").Used })
	for range 3 {
		round()
	}
	if w := way(); w.Way == api.WayFast || !strings.Contains(w.Remedy, "GRO") {
		t.Errorf("after GRO was turned off: %+v", w)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
	for _, s := range []string{"port is off the fast path", "port is on the fast path again"} {
		if !strings.Contains(p.Output(), s) {
			t.Errorf("the log does not say %q:\n%s", s, p.Output())
		}
	}
}
