// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// neighbours is the number of addresses that strangers send requests from. All
// namespaces of a kernel share the room for neighbours
// (net.ipv4.neigh.default.gc_thresh3), and the hosts need some.
const neighbours = 200

// strangers returns frames of ever new hosts: each makes the kernel learn a MAC address
// or a neighbour, or the switch look up a location for its answer.
func (a *attacker) strangers() func(i int) []byte {
	a.r.t.Helper()
	port, b := a.portMAC(), make([]byte, 256)
	to := lab.StarSwitchIPv4
	if a.r.c.v6 {
		to = lab.StarSwitchIPv6
	}
	return func(i int) []byte {
		p := rocev2.Path{DstMAC: port, SrcPort: 4797}
		_, p.SrcMAC = a.stranger(i)
		if i%4 == 0 {
			i %= 4 * neighbours
		}
		p.Src, _ = a.stranger(i)
		switch i % 4 {
		case 0: // a request for the switch's own address
			p.Dst = to
			if a.r.c.v6 {
				return b[:rocev2.BuildNeighborSolicitation(b, &p, to)]
			}
			return b[:rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: p.SrcMAC, SenderIP: p.Src, TargetIP: to})]
		case 1: // an envelope without a MAC
			p.Dst = a.r.group
			data, err := envelope.Append(nil, &envelope.Message{Header: envelope.Header{
				Epoch: 1, Transaction: uint32(i), Total: 1, Group: p.Dst, ReplyTo: netip.AddrPortFrom(p.Src, 4797),
			}, Body: &envelope.Renew{Lease: time.Second}}, nil, 0)
			if err != nil {
				panic(err)
			}
			return b[:rocev2.BuildUDP(b, &p, 4797, data)]
		}
		f := a.harmless(60)
		copy(f, port[:])
		copy(f[6:], p.SrcMAC[:])
		return f
	}
}

// A stranger that fills the kernel's tables, and goes on with it, has no effect on the
// control plane: with 300,000 addresses in the forwarding database and 20,000 frames a
// second of ever new hosts, registrations are fast, no lease is lost, no iteration of
// the control loop is long, and the state of links is followed.
func TestFullTables(t *testing.T) {
	const learnt, rate, most = 300_000, 20_000, 100 * time.Millisecond
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.joinByMaster(func(c *endpoint.MasterConfig) { c.Lease = time.Second })
		registered, err := r.engine.Group(r.group)
		if err != nil {
			t.Fatal(err)
		}
		machine := labtest.Watch()
		a := r.attacker(0)
		if !c.star.NoBridge {
			labtest.Learn(t, r.star.Switch, a.Port, learnt)
		}
		var others []*rig
		for group := r.group.Next(); len(others) < 5; group = group.Next() {
			o := r.another(group, 0, 1, 2)
			o.connect()
			others = append(others, o)
		}
		f := a.flood(rate, 0, a.strangers())
		var slowest time.Duration
		for _, o := range others {
			time.Sleep(400 * time.Millisecond) // answers grow old, leases need to be renewed
			start := time.Now()
			if err := r.engine.Register(o.registration()); err != nil {
				t.Error(err)
			}
			slowest = max(slowest, time.Since(start))
		}
		for _, up := range []bool{false, true} {
			change := r.star.Switch.SetDown
			if up {
				change = r.star.Switch.SetUp
			}
			if err := change("p3"); err != nil {
				t.Fatal(err)
			}
			until(t, "the port's state is known", func() bool { return r.ports()[2].Up == up })
		}
		n, got := f.end(t)
		s := r.stats().Control
		t.Logf("%d frames at %.0f/s: the slowest registration took %v, the longest of %d turns %v; %d questions, %d resyncs",
			n, got, slowest, s.Iterations, time.Duration(s.LongestIteration*1e9), s.Lookups, s.Resyncs)
		if g, err := r.engine.Group(r.group); err != nil || g.Epoch != registered.Epoch || g.LeaseLeft == 0 {
			t.Errorf("the group with a lease: %+v, %v", g, err)
		}
		if len(s.NotWatched) > 0 || s.Hosts > 4096+10 {
			t.Errorf("not watched: %v; %d hosts", s.NotWatched, s.Hosts)
		}
		if slowest > most || s.LongestIteration > 0.05 {
			machine.Timing(t, "the slowest registration took %v, want %v; the longest turn %.1f ms, want 50", slowest, most, s.LongestIteration*1e3)
		}
	})
}
