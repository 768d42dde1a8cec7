// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
)

var otherGroup = netip.MustParseAddr("10.77.254.2")

// A receiver's link goes down in the middle of a transfer: packets for it are counted.
// When the link is up again, the transfer goes on and completes.
func TestLinkDownAndUp(t *testing.T) {
	for name, end := range map[string]func(*rig) (*lab.Namespace, string){
		"the switch's port":    func(r *rig) (*lab.Namespace, string) { return r.star.Switch, "p3" },
		"the host's interface": func(r *rig) (*lab.Namespace, string) { return r.star.Hosts[2].NS, lab.HostInterface },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 8 << 20})
			r.join()
			r.fill(0)
			ns, link := end(r)
			n := r.post(0, 100_000)
			until(t, "the transfer begins", func() bool { return r.stats().Rx > 200 })
			if err := ns.SetDown(link); err != nil {
				t.Fatal(err)
			}
			until(t, "port_down", func() bool { return r.drops()["port_down"] > 0 })
			until(t, "the port is shown as down", func() bool { return !r.ports()[2].Up && r.said("true port is down") })
			until(t, "the group waits for the host", func() bool {
				g, err := r.engine.Group(r.group)
				return err == nil && g.WaitsFor == r.hosts[2].ip
			})
			if err := ns.SetUp(link); err != nil {
				t.Fatal(err)
			}
			until(t, "the port is up", func() bool { return r.ports()[2].Up && r.said("false port is up") })
			r.complete(r.hosts[0], n)
			r.same(0)
		})
	}
}

// A receiver's interface is deleted in the middle of a transfer. A group that evicts
// silent members goes on without the receiver, and so does a group without it as a
// member; the frames of the interface's sockets are free again, and the switch logs the
// loss.
func TestInterfaceDeleted(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: 4 << 20})
	groups := r.joinByMaster(func(c *endpoint.MasterConfig) { c.Policy, c.DeadAfter = mcast.Evict, 300*time.Millisecond })
	window := groups[0].Info().Window
	o := r.another(otherGroup, 0, 1, 2)
	o.join()
	want, other := bytes.Clone(r.fill(0)), bytes.Clone(o.fill(1))
	copy(o.hosts[0].mr.Bytes(), other)

	h := r.hosts[0]
	const message = 100_000
	n := 0
	for off := 0; off < h.mr.Len(); off += message {
		if _, err := h.qp.PostSend(endpoint.SendWR{
			ID: uint64(n), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: min(message, h.mr.Len()-off)},
			RemoteAddr: window.Base + uint64(off), RKey: window.RKey,
		}); err != nil {
			t.Fatal(err)
		}
		n++
	}
	m := o.post(0, message)
	until(t, "the transfers begin", func() bool { return r.stats().Rx > 200 })
	if err := r.star.Switch.DeleteLink("p4"); err != nil {
		t.Fatal(err)
	}
	until(t, "the switch says so", func() bool { return r.said("true port is gone") })
	o.complete(o.hosts[0], m)
	r.complete(h, n)
	for _, x := range r.hosts[1:3] {
		if !bytes.Equal(x.mr.Bytes(), want) {
			t.Errorf("%s does not have the bytes of the group that evicts", x.Name)
		}
	}
	o.same(0)
	until(t, "eviction", func() bool { return r.said("true member evicted") })
	if p := r.ports()[3]; p.Up {
		t.Errorf("the deleted port is shown as up: %+v", p)
	}
	const fill = 512 // entries of the fill ring, as in the rig's configuration
	until(t, "the deleted port's frames are free", func() bool { s := r.stats(); return s.FramesFree >= s.Frames-3*fill })

	// The remaining ports work.
	copy(o.hosts[0].mr.Bytes(), want)
	o.write(0, message)
	o.same(0)
}
