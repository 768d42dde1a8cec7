// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// fastNet is a star whose switch has nothing but the XDP programs with the fast path.
type fastNet struct {
	*lab.Star
	maps     *fastpath.Maps
	programs []*bpf.PortProgram
	ifindex  []int // the interfaces of the ports
	taps     []*labtest.Tap
}

var fastPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.254.0/24"), netip.MustParsePrefix("fd77:1::/64")}

func newFastNet(t *testing.T, hosts int) *fastNet { return newFastNetOf(t, hosts, 3000) }

func newFastNetOf(t *testing.T, hosts, mtu int) *fastNet {
	t.Helper()
	x := &fastNet{Star: labtest.Star(t, lab.StarConfig{Hosts: hosts, MTU: mtu, NoBridge: true})}
	var err error
	if err := x.Switch.Do(func() (err error) {
		x.maps, err = fastpath.New(fastpath.Config{
			Ports: hosts, Sizes: []fastpath.Size{{Legs: 4, Groups: 1}, {Legs: 40, Groups: 1}}, Slots: 1 << 10, LargeSlots: 1 << 8,
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	steering, err := bpf.NewSteering(fastPrefixes, 4792, hosts)
	if err != nil {
		t.Fatal(err)
	}
	steering.UseFastPath(x.maps)
	t.Cleanup(func() {
		for _, p := range x.programs {
			err = errors.Join(err, p.Close())
		}
		if err := errors.Join(err, steering.Close(), x.maps.Close()); err != nil {
			t.Error(err)
		}
	})
	for i, h := range x.Hosts {
		l, err := x.Switch.Handle().LinkByName(x.Ports[i])
		if err != nil {
			t.Fatal(err)
		}
		x.ifindex = append(x.ifindex, l.Attrs().Index)
		if err := x.Switch.Do(func() error {
			p, err := steering.Attach(l.Attrs().Index, x.Ports[i], bpf.Native, mtu)
			if err == nil {
				x.programs = append(x.programs, p)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := h.NS.SetFeature(h.Interface, lab.GRO, true); err != nil { // or redirected frames are dropped there
			t.Fatal(err)
		}
		x.taps = append(x.taps, labtest.NewTap(t, h))
	}
	return x
}

// put makes a group FAST from first on, as far as its ring goes.
func (x *fastNet) put(t *testing.T, s *fastpath.GroupSpec, first rocev2.PSN, open bool) (g *fastpath.Group) {
	t.Helper()
	if err := x.Switch.Do(func() (err error) { g, err = x.maps.Put(s); return err }); err != nil {
		t.Fatal(err)
	}
	g.Grant(first, open, first.Add(int32(s.Slots)))
	return g
}

// loadFromRing waits until the ring has the packet of psn.
func loadFromRing(t *testing.T, g *fastpath.Group, psn rocev2.PSN, buf []byte) (frame []byte, at time.Duration) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		if n, at, ok := g.Load(psn, buf); ok {
			return buf[:n], at
		}
		if time.Now().After(end) {
			t.Fatalf("packet %06x is not in the ring; the group is at %+v", psn, g.State())
		}
	}
}
