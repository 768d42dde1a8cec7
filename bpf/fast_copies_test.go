// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/copycases"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// copiesRig is a switch with the programs of the fast path on its ports, whose hosts tap what
// leaves, and nothing else: frames come by test runs.
type copiesRig struct {
	*testing.T
	star     *lab.Star
	maps     *fastpath.Maps
	programs []*PortProgram
	ifindex  []int
	taps     []*labtest.Tap
}

func newCopiesRig(t *testing.T) *copiesRig {
	t.Helper()
	x := &copiesRig{T: t, star: labtest.Star(t, lab.StarConfig{Hosts: copycases.Ports, MTU: 3000, NoBridge: true})}
	s, err := NewSteering([]netip.Prefix{netip.MustParsePrefix("10.77.254.0/24"), netip.MustParsePrefix("fd77:1::/64")}, testEnvelopePort, copycases.Ports)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for _, p := range x.programs {
			err = errors.Join(err, p.Close())
		}
		if err = errors.Join(err, s.Close()); x.maps != nil {
			err = errors.Join(err, x.maps.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	x.do(func() (err error) {
		x.maps, err = fastpath.New(fastpath.Config{Ports: copycases.Ports, Sizes: []fastpath.Size{{Legs: 5, Groups: 1}}, Slots: 16, LargeSlots: 16})
		return err
	})
	s.UseFastPath(x.maps)
	for i, h := range x.star.Hosts {
		l, err := x.star.Switch.Handle().LinkByName(x.star.Ports[i])
		if err == nil {
			err = h.NS.SetFeature(h.Interface, lab.GRO, true) // or redirected frames are dropped there
		}
		if err != nil {
			t.Fatal(err)
		}
		x.ifindex = append(x.ifindex, l.Attrs().Index)
		x.do(func() error {
			p, err := s.Attach(l.Attrs().Index, x.star.Ports[i], Native, 3000)
			if err == nil {
				x.programs = append(x.programs, p)
			}
			return err
		})
		x.taps = append(x.taps, labtest.NewTap(t, h))
	}
	return x
}

// do runs f in the switch's network namespace.
func (x *copiesRig) do(f func() error) {
	x.Helper()
	if err := x.star.Switch.Do(f); err != nil {
		x.Fatal(err)
	}
}

// put makes the group of a case FAST, so that the frame is the next one.
func (x *copiesRig) put(c *copycases.Case) (g *fastpath.Group) {
	x.Helper()
	s := fastpath.GroupSpec{
		IP: c.Group.IP, QPN: c.Group.QPN, PMTU: c.Group.PMTU, Slots: 16,
		Source: fastpath.Source{IP: c.Group.Source, MAC: c.Group.SourceMAC, Ifindex: x.ifindex[0]},
		Window: fastpath.Window{Base: c.Group.WindowBase, Len: c.Group.WindowLen, RKey: c.Group.WindowRKey},
	}
	for i := range c.Group.Legs {
		l := &c.Group.Legs[i]
		s.Legs = append(s.Legs, fastpath.LegSpec{
			Port: l.Port, Ifindex: x.ifindex[l.Port], PortMAC: l.PortMAC, MAC: l.MAC, VLAN: l.VLAN, IP: l.IP, QPN: l.QPN,
			PSNDelta: l.PSN, VADelta: l.VA, RKey: l.RKey, Gate: fastpath.Gate{Next: c.PSN},
		})
	}
	x.do(func() (err error) { g, err = x.maps.Put(&s); return err })
	g.Grant(c.PSN, false, c.PSN.Next())
	return g
}

// run gives a frame to the program of port 0. Live, what the program redirects is sent; else
// the result is the action, and out has the frame as it leaves the program.
func (x *copiesRig) run(c *copycases.Case, live bool) (action uint32, out []byte) {
	x.Helper()
	run := ebpf.RunOptions{Data: c.Frame, Repeat: 1, Context: testContext{DataEnd: uint32(len(c.Frame)), IngressIfindex: uint32(x.ifindex[0])}}
	if live {
		run.Flags = unix.BPF_F_TEST_XDP_LIVE_FRAMES
	} else {
		run.DataOut = make([]byte, 4096)
	}
	x.do(func() (err error) { action, err = x.programs[0].program.Run(&run); return err })
	return action, run.DataOut
}

// The common table's packets in the kernel. Each is taken; it is in the ring, and goes to the
// DEVMAP, as it came; and its copies, which the kernel has no test run for but sending them,
// are those of the table, byte for byte. So they are the worker's (dataplane, TestCopies).
func TestFastCopies(t *testing.T) {
	x := newCopiesRig(t)
	const meta = 16
	copies := 0
	for _, c := range copycases.Copied() {
		g := x.put(&c)
		action, out := x.run(&c, false)
		if action != xdpRedirect || len(out) < meta || !bytes.Equal(out[meta:], c.Frame) {
			t.Errorf("%s: action %d, the frame is\n%x, was\n%x", c.Name, action, out[min(meta, len(out)):], c.Frame)
		}
		x.checkTaken(g, &c)
		g.Grant(c.PSN, false, c.PSN.Next())
		x.run(&c, true)
		x.checkTaken(g, &c)
		want := make([][][]byte, copycases.Ports)
		for i := range c.Copies {
			want[c.Group.Legs[i].Port] = append(want[c.Group.Legs[i].Port], c.Copies[i])
		}
		for p := range want {
			for range want[p] {
				got := x.taps[p].Next()
				i := slices.IndexFunc(want[p], func(b []byte) bool { return bytes.Equal(b, got) })
				if i < 0 {
					t.Fatalf("%s, port %d: the copy is\n%x; want one of\n%x", c.Name, p, got, want[p])
				}
				want[p][i] = nil
				copies++
			}
		}
		for i := range c.Copies {
			if gate := g.Gate(i); gate != (fastpath.Gate{Next: c.PSN.Next(), Copies: 1}) {
				t.Errorf("%s: the gate of leg %d is at %+v", c.Name, i, gate)
			}
		}
		if err := g.Delete(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tap := range x.taps {
		tap.Idle()
	}
	t.Logf("%d copies", copies)
}

// checkTaken checks that the packet of a case was taken and stored.
func (x *copiesRig) checkTaken(g *fastpath.Group, c *copycases.Case) {
	x.Helper()
	want := fastpath.State{Hi: c.PSN.Next(), Open: !c.Op.Is(rocev2.OpEnd), Fast: true}
	if !want.Open {
		want.Ends = 1
	}
	if s := g.State(); s != want {
		x.Errorf("%s: the group is at %+v, want %+v", c.Name, s, want)
	}
	var buf [4096]byte
	if n, at, ok := g.Load(c.PSN, buf[:]); !ok || !bytes.Equal(buf[:n], c.Frame) || c.Ask != (at != 0) {
		x.Errorf("%s: the ring has %x (%v, at %v), want %x", c.Name, buf[:n], ok, at, c.Frame)
	}
}

// listen gives port 0 an AF_XDP socket, and returns what receives from it.
func (x *copiesRig) listen() (next func() []byte) {
	x.Helper()
	u, err := xsk.NewUmem(8, 2048)
	if err != nil {
		x.Fatal(err)
	}
	pool := xsk.NewPool(u)
	var s *xsk.Socket
	x.do(func() (err error) {
		s, err = xsk.Open(u, xsk.Config{Ifindex: x.ifindex[0], Ifname: x.star.Ports[0]})
		return err
	})
	x.Cleanup(func() {
		if err := errors.Join(s.Close(), u.Close()); err != nil {
			x.Error(err)
		}
	})
	if err := x.programs[0].SetSocket(0, s.FD()); err != nil {
		x.Fatal(err)
	}
	free := make([]uint64, 8)
	s.Fill(free[:pool.Take(free)])
	return func() []byte {
		d := make([]xsk.Desc, 2)
		n := s.Receive(d)
		if n > 1 {
			x.Fatalf("%d frames at the socket", n)
		}
		if n == 0 {
			return nil
		}
		b := bytes.Clone(u.Data(d[0].Addr, d[0].Len))
		s.Fill([]uint64{d[0].Addr})
		return b
	}
}

// The common table's other frames change nothing, are counted for their reason, and are as
// they came for the worker; no copy leaves. Fragments alone do not get to it.
func TestFastCopiesLeft(t *testing.T) {
	x := newCopiesRig(t)
	next := x.listen()
	for _, c := range copycases.Left() {
		g := x.put(&c)
		before := g.State()
		action, out := x.run(&c, false)
		want := uint32(xdpRedirect)
		if c.Decode == rocev2.ReasonFragment {
			want = xdpDrop
		}
		if action != want || !bytes.Equal(out, c.Frame) {
			t.Errorf("%s: action %d, want %d; the frame is\n%x, was\n%x", c.Name, action, want, out, c.Frame)
		}
		x.run(&c, true)
		if got := next(); (want == xdpRedirect) != bytes.Equal(got, c.Frame) || want == xdpDrop && got != nil {
			t.Errorf("%s: the worker gets\n%x, want\n%x", c.Name, got, c.Frame)
		}
		if s := g.State(); s != before {
			t.Errorf("%s: the group is at %+v, was at %+v", c.Name, s, before)
		}
		counters, err := g.Counters()
		if err != nil {
			t.Fatal(err)
		}
		for r, n := range counters {
			if is := fastpath.Reason(r).String() == c.Left; is != (n == 2) || !is && n != 0 {
				t.Errorf("%s: %d packets left as %s, want two as %s", c.Name, n, fastpath.Reason(r), c.Left)
			}
		}
		if err := g.Delete(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tap := range x.taps {
		tap.Idle()
	}
}
