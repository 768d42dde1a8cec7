// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
)

func asError(err error, e **api.Error) bool { return errors.As(err, e) }

// A registration that cannot be served is rejected with its reason, by hand and by
// envelope, and leaves no state.
func TestRejections(t *testing.T) {
	r := newRig(t, rigConfig{
		star:   lab.StarConfig{Hosts: 3},
		config: "limits: {groups: 2, members_per_group: 4}\n",
	})
	nobody := netip.MustParseAddr("10.77.0.200")
	for _, c := range []struct {
		name, reason string
		says         string // part of the message
		change       func(*api.Register)
	}{
		{"unknown member location", "unknown member location", nobody.String(), func(g *api.Register) { g.Members[2].IP = nobody }},
		{"loopback", "invalid member", "127.0.0.1", func(g *api.Register) { g.Members[2].IP = netip.MustParseAddr("127.0.0.1") }},
		{"the switch itself", "unknown member location", "10.77.255.254", func(g *api.Register) { g.Members[2].IP = lab.StarSwitchIPv4 }},
		{"path MTU beyond the ports'", "path MTU mismatch", "1024", func(g *api.Register) { g.PMTU = 2048 }},
		{"no path MTU", "path MTU mismatch", "", func(g *api.Register) { g.PMTU = 1500 }},
		{"one member twice", "overlapping members", r.hosts[1].ip.String(), func(g *api.Register) { g.Members[2].IP = r.hosts[1].ip }},
		{"not a group prefix", "not a group prefix", "10.77.254.0/24", func(g *api.Register) { g.Group = netip.MustParseAddr("10.78.0.1") }},
		{"multicast group", "not a group prefix", "", func(g *api.Register) { g.Group = netip.MustParseAddr("239.1.1.1") }},
		{"one member", "too few members", "", func(g *api.Register) { g.Members = g.Members[:1] }},
		{"five members", "too many members", "4", func(g *api.Register) {
			for i := byte(10); i < 12; i++ {
				m := g.Members[0]
				m.IP = netip.AddrFrom4([4]byte{10, 77, 0, i})
				g.Members = append(g.Members, m)
			}
		}},
		{"IPv6 member", "IP family mismatch", "", func(g *api.Register) { g.Members[2].IP = r.star.Hosts[2].IPv6 }},
		{"QPN 1", "invalid member", "no RC queue pair has this number", func(g *api.Register) { g.Members[2].QPN = 1 }},
		{"virtual QPN 0", "invalid virtual QPN", "", func(g *api.Register) { g.QPN = 0 }},
		{"short window", "bad window", r.hosts[2].ip.String(), func(g *api.Register) { g.Members[2].Window.Len-- }},
		{"window past the end of memory", "bad window", "", func(g *api.Register) { g.Window.VA = ^uint64(0) - 5 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := r.registration()
			c.change(g)
			err := r.engine.Register(g)
			var e *api.Error
			if !asError(err, &e) || e.Reason != c.reason || !strings.Contains(e.Message, c.reason) || !strings.Contains(e.Message, c.says) {
				t.Fatalf("%v, want reason %q and %q in it", err, c.reason, c.says)
			}
			if s := r.stats(); s.Groups != 0 {
				t.Fatalf("%d groups are registered", s.Groups)
			}
		})
	}

	// The table has room for two groups.
	r.join()
	o := r.another(otherGroup, 0, 1, 2)
	o.join()
	third := r.another(netip.MustParseAddr("10.77.254.3"), 0, 1, 2)
	var e *api.Error
	if err := r.engine.Register(third.registration()); !asError(err, &e) || e.Reason != "table full" || !strings.Contains(e.Message, "2") {
		t.Errorf("third group: %v", err)
	}
	// A queue pair is in one group only.
	if err := r.engine.Delete(o.group); err != nil {
		t.Fatal(err)
	}
	stolen := third.registration()
	stolen.Members[1] = r.registration().Members[1]
	if err := r.engine.Register(stolen); !asError(err, &e) || e.Reason != "overlapping members" || !strings.Contains(e.Message, "it is in group "+r.group.String()) {
		t.Errorf("a member of another group: %v", err)
	}
	// The first group has not noticed any of it.
	r.fill(0)
	r.write(0, 100_000)
	r.same(0)
}

// A master's error names the switch's reason.
func TestMasterHearsTheReason(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 2}, config: "limits: {groups: 1, members_per_group: 4}\n"})
	o := r.another(otherGroup, 0, 1)
	o.join()
	for _, c := range []struct {
		name, says string
		change     func(*endpoint.MasterConfig)
	}{
		{"table full", "table full", nil},
		{"path MTU", "use at most 1024", func(c *endpoint.MasterConfig) { c.PathMTU = 2048 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh := r.another(r.group, 0, 1)
			if _, err := fresh.tryMaster(c.change); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q in it", err, c.says)
			}
		})
	}
	if s := r.stats(); s.Groups != 1 {
		t.Errorf("%d groups are registered", s.Groups)
	}
}

// Recorded envelopes register no group when they are sent again after the group has
// ended.
func TestReplayedEnvelopes(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 2}})
	wire := newTap(t, r.star.Hosts[0])
	wire.seeOutgoing()
	groups := r.joinByMaster(nil)
	if err := groups[0].Leave(r.ctx); err != nil {
		t.Fatal(err)
	}
	until(t, "the group is gone", func() bool { return r.stats().Groups == 0 })
	var recorded [][]byte
	for c := wire.next(); c != nil; c = wire.next() {
		if c.Dst() == r.group && c.UDP() != nil && c.UDP().DstPort() == envelope.DefaultPort {
			recorded = append(recorded, c.raw)
		}
	}
	if len(recorded) < 2 {
		t.Fatalf("recorded %d envelopes", len(recorded))
	}
	before := r.drops()
	refusals := func() (n uint64) {
		for name, v := range r.drops() {
			if strings.HasPrefix(name, "envelope_") {
				n += v - before[name]
			}
		}
		return n
	}
	for i, b := range recorded {
		wire.send(b)
		until(t, "a replayed envelope is refused", func() bool { return refusals() == uint64(i+1) })
	}
	if s := r.stats(); s.Groups != 0 {
		t.Errorf("replay registered %d groups", s.Groups)
	}
}
