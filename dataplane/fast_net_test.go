// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/tools/lab"
)

// fastNet is a star whose switch has nothing but the XDP programs with the fast path.
type fastNet struct {
	*lab.Star
	maps     *fastpath.Maps
	programs []*bpf.PortProgram
	ifindex  []int // of the ports
	taps     []*fastTap
}

var fastPrefixes = []netip.Prefix{netip.MustParsePrefix("10.77.254.0/24"), netip.MustParsePrefix("fd77:1::/64")}

func newFastNet(t *testing.T, hosts int) *fastNet {
	t.Helper()
	x := &fastNet{Star: labtest.Star(t, lab.StarConfig{Hosts: hosts, MTU: 3000, NoBridge: true})}
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
			p, err := steering.Attach(l.Attrs().Index, x.Ports[i], bpf.Native, 3000)
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
		x.taps = append(x.taps, newFastTap(t, h))
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

// fastTap is a packet socket at a host.
type fastTap struct {
	t   *testing.T
	fd  int
	buf [4096]byte
	ctl [128]byte
}

func newFastTap(t *testing.T, h lab.Host) *fastTap {
	t.Helper()
	p := &fastTap{t: t}
	err := h.NS.Do(func() (err error) {
		link, err := h.NS.Handle().LinkByName(h.Interface)
		if err != nil {
			return err
		}
		if p.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}),
			unix.Bind(p.fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8, Ifindex: link.Attrs().Index}),
		)
	})
	if err != nil {
		t.Fatalf("tap at %s: %v", h.Name, err)
	}
	t.Cleanup(func() { unix.Close(p.fd) })
	return p
}

func (p *fastTap) send(frame []byte) {
	p.t.Helper()
	if _, err := unix.Write(p.fd, frame); err != nil {
		p.t.Fatalf("send %d bytes: %v", len(frame), err)
	}
}

// next returns the next RoCEv2 packet, with the VLAN tag that the kernel has taken off.
func (p *fastTap) next() []byte {
	p.t.Helper()
	for {
		n, cn, _, _, err := unix.Recvmsg(p.fd, p.buf[:], p.ctl[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			p.t.Fatalf("no packet came: %v", err)
		}
		b := labtest.Retag(p.buf[:n], p.ctl[:cn])
		var f rocev2.Frame
		if rocev2.Decode(b, &f); f.Kind == rocev2.KindRoCE {
			return b
		}
	}
}

// quiet fails if a RoCEv2 packet has come.
func (p *fastTap) quiet() {
	p.t.Helper()
	for {
		n, _, _, _, err := unix.Recvmsg(p.fd, p.buf[:], p.ctl[:], unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		var f rocev2.Frame
		if rocev2.Decode(p.buf[:n], &f); f.Kind == rocev2.KindRoCE {
			p.t.Fatalf("a packet too many came: %x", p.buf[:n])
		}
	}
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
