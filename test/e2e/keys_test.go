// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
)

// sendTo has a group's master write to the group, and checks that all others have the bytes.
func (r *rig) sendTo(groups []*endpoint.Group) {
	r.t.Helper()
	r.fill(0)
	r.complete(r.hosts[0], r.postAll(groups[0]))
	r.same(0)
}

// Hosts that have only the second key of the switch join, send, are reminded, leave and
// delete: all that the switch sends them is under the key that they have.
func TestSecondKey(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, keys: []envelope.KeyID{1, 2}})
	groups := r.joinByMaster(func(c *endpoint.MasterConfig) { c.Lease = time.Second }) // is renewed meanwhile
	r.sendTo(groups)
	if err := groups[2].Leave(r.ctx); err != nil {
		t.Errorf("leave: %v", err)
	}
	if e := awaitEvent(t, groups[0], endpoint.MemberLeft); e.Member != r.hosts[2].ip {
		t.Errorf("the master heard %+v", e)
	}
	until(t, "the lease is renewed", func() bool {
		g, err := r.engine.Group(r.group)
		return err == nil && g.LeaseLeft < 0.8
	})
	until(t, "the lease is renewed", func() bool {
		g, err := r.engine.Group(r.group)
		return err == nil && g.LeaseLeft > 0.9
	})
	if err := groups[0].Leave(r.ctx); err != nil {
		t.Errorf("delete: %v", err)
	}
	if e := awaitEvent(t, groups[1], endpoint.Ended); e.Reason != envelope.Deleted {
		t.Errorf("the member heard %+v", e)
	}
	if s := r.stats(); s.Groups != 0 {
		t.Errorf("%d groups", s.Groups)
	}
	for name, n := range r.drops() { // nothing is acknowledged in vain
		if strings.HasPrefix(name, "envelope_") && n > 0 && name != "envelope_wrong_instance" && name != "envelope_duplicate" {
			t.Errorf("%s %d", name, n)
		}
	}
}

// A key is exchanged while groups run: SIGHUP puts a new one beside the old one, new
// groups use it, and the old one's go on. Once the old key is removed its groups end
// with their leases, and their members get a Gone under the old secret; the others go
// on.
func TestKeysAreExchanged(t *testing.T) {
	d := newDaemon(t, 4)
	plain := d.config
	keys := func(ids ...envelope.KeyID) string {
		return strings.Replace(plain, "envelope: {insecure: true}\n", keysConfig(ids...), 1)
	}
	p := d.start(t, keys(1), nil)
	client := d.ready(t, p)
	reload := func(ids ...envelope.KeyID) {
		t.Helper()
		before := len(p.Output())
		if err := os.WriteFile(d.file, []byte(keys(ids...)), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		until(t, "the keys are reloaded", func() bool { return strings.Contains(p.Output()[before:], "the configuration is reloaded") })
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	of := func(key envelope.KeyID, hosts ...int) *rig {
		r := &rig{t: t, ctx: ctx, star: d.star, group: group4, c: rigConfig{pathMTU: 1024, memory: 256 << 10, policy: "strict", keys: []envelope.KeyID{key}}}
		for i, n := range hosts {
			h := d.star.Hosts[n]
			x := &rigHost{Host: h, ip: h.IPv4}
			if err := h.NS.Do(func() (err error) { x.dev, err = soft.Open(soft.Config{Interface: h.Interface}); return err }); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { x.dev.Close() })
			r.equip(i, x)
			r.hosts = append(r.hosts, x)
		}
		return r
	}
	short := func(c *endpoint.MasterConfig) { c.Lease = time.Second }

	first, second := of(1, 0, 1), of(2, 2, 3)
	second.group = otherGroup
	a := first.joinByMaster(short)
	reload(1, 2)
	b := second.joinByMaster(short)
	first.sendTo(a)
	second.sendTo(b)

	reload(2)
	since := time.Now()
	first.sendTo(a) // until the lease ends
	for i, g := range a {
		if e := awaitEvent(t, g, endpoint.Ended); i > 0 && e.Reason != envelope.Expired {
			t.Errorf("%s heard %+v", first.hosts[i].Name, e)
		}
	}
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("the old key's group ended after %v, its lease is a second", took)
	}
	gs, err := client.Groups(t.Context())
	if err != nil || len(gs) != 1 || gs[0].IP != second.group {
		t.Errorf("groups %+v, %v", gs, err)
	}
	second.sendTo(b)
	es, err := client.Events(t.Context(), 0, 0)
	if err != nil || !slices.ContainsFunc(es.Events, func(e api.Event) bool {
		return e.Kind == api.EventRejected && strings.Contains(e.Reason, "unknown_key")
	}) {
		t.Errorf("no event says that the old key is not known any more: %+v, %v", es, err)
	}
}
