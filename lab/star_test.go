// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// listen opens a UDP socket on a host.
func listen(t *testing.T, h lab.Host, a netip.Addr) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	err := h.NS.Do(func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 7)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// exchange sends one datagram each way. No retry: the first packet after setup
// has to arrive.
func exchange(t *testing.T, a, b lab.Host, addr func(lab.Host) netip.Addr, size int) {
	t.Helper()
	ca, cb := listen(t, a, addr(a)), listen(t, b, addr(b))
	defer ca.Close()
	defer cb.Close()
	buf := make([]byte, 65536)
	for _, dir := range []struct {
		from, to *net.UDPConn
		src, dst lab.Host
	}{{ca, cb, a, b}, {cb, ca, b, a}} {
		what := fmt.Sprintf("%s to %s by %s", dir.src.Name, dir.dst.Name, addr(a))
		if _, err := dir.from.WriteToUDPAddrPort(make([]byte, size), netip.AddrPortFrom(addr(dir.dst), 7)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_ = dir.to.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, from, err := dir.to.ReadFromUDPAddrPort(buf)
		if err != nil || n != size || from.Addr().Unmap() != addr(dir.src) {
			t.Fatalf("%s: got %d bytes from %v: %v", what, n, from, err)
		}
	}
}

func v4(h lab.Host) netip.Addr { return h.IPv4 }
func v6(h lab.Host) netip.Addr { return h.IPv6 }

func TestStarsCarryTraffic(t *testing.T) {
	for _, tt := range []struct {
		name  string
		c     lab.StarConfig
		ports []string
	}{
		{"bridge", lab.StarConfig{Hosts: 3}, []string{"p1", "p2", "p3"}},
		{"rack", lab.StarConfig{Hosts: 6, Rack: 5}, []string{"p1", "p2"}},
		{"all in the rack", lab.StarConfig{Hosts: 2, Rack: 2}, []string{"p1"}},
		{"no bridge", lab.StarConfig{Hosts: 3, NoBridge: true}, []string{"p1", "p2", "p3"}},
		{"jumbo", lab.StarConfig{Hosts: 2, MTU: 4300, Queues: 2}, []string{"p1", "p2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := labtest.Star(t, tt.c)
			if got := fmt.Sprint(s.Ports); got != fmt.Sprint(tt.ports) {
				t.Errorf("ports %s, want %v", got, tt.ports)
			}
			last := s.Hosts[len(s.Hosts)-1]
			if want := tt.ports[len(tt.ports)-1]; last.Port != want {
				t.Errorf("%s is behind %s, want %s", last.Name, last.Port, want)
			}
			for _, addr := range []func(lab.Host) netip.Addr{v4, v6} {
				exchange(t, s.Hosts[0], last, addr, 100)
				exchange(t, s.Hosts[0], last, addr, max(tt.c.MTU, 1500)-48) // a full frame
			}
		})
	}
}

// TestSwitchReachesHosts: the switch has to resolve its hosts' addresses.
func TestSwitchReachesHosts(t *testing.T) {
	for _, c := range []lab.StarConfig{{Hosts: 2}, {Hosts: 2, NoBridge: true}} {
		s := labtest.Star(t, c)
		sw := lab.Host{Name: "sw", NS: s.Switch, IPv4: lab.StarSwitchIPv4, IPv6: lab.StarSwitchIPv6}
		for _, h := range s.Hosts {
			exchange(t, sw, h, v4, 10)
			exchange(t, sw, h, v6, 10)
		}
	}
}

func TestLinkStatsCountFrames(t *testing.T) {
	s := labtest.Star(t, lab.StarConfig{Hosts: 2})
	exchange(t, s.Hosts[0], s.Hosts[1], v4, 10) // resolve first
	before, err := s.Switch.LinkStats("p1")
	if err != nil {
		t.Fatal(err)
	}
	const n, size = 50, 1000
	c := listen(t, s.Hosts[0], s.Hosts[0].IPv4)
	for range n {
		if _, err := c.WriteToUDPAddrPort(make([]byte, size), netip.AddrPortFrom(s.Hosts[1].IPv4, 9)); err != nil && !isRefused(err) {
			t.Fatal(err)
		}
	}
	want := uint64(n * (14 + 20 + 8 + size))
	eventually(t, "the port has counted the frames", func() bool {
		after, err := s.Switch.LinkStats("p1")
		if err != nil {
			t.Fatal(err)
		}
		d := after.Sub(before)
		// Other packets, such as neighbour probes, may add a few small frames.
		return d.RxPackets >= n && d.RxBytes >= want && d.RxBytes < want+want/10
	})
	if _, err := s.Switch.LinkStats("p9"); err == nil {
		t.Error("counters of an interface that is not there")
	}
}

// isRefused: the far host answers port unreachable, which a later send reports.
func isRefused(err error) bool {
	op, ok := err.(*net.OpError)
	if !ok {
		return false
	}
	sys, ok := op.Err.(*os.SyscallError)
	return ok && sys.Syscall == "sendto"
}

func TestDeterministicAddresses(t *testing.T) {
	for range 2 {
		s := labtest.Star(t, lab.StarConfig{Hosts: 2})
		h := s.Hosts[1]
		link, err := h.NS.Handle().LinkByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		a := link.Attrs()
		if a.HardwareAddr.String() != "02:67:6c:01:00:02" || h.MAC.String() != a.HardwareAddr.String() {
			t.Errorf("h2 has %s, Host says %s", a.HardwareAddr, h.MAC)
		}
		if a.NumRxQueues != 1 || a.NumTxQueues != 1 || a.MTU != 1500 {
			t.Errorf("h2: %d RX and %d TX queues, MTU %d", a.NumRxQueues, a.NumTxQueues, a.MTU)
		}
	}
}

// TestBigStar reports how long the largest star takes.
func TestBigStar(t *testing.T) {
	labtest.Require(t)
	start := time.Now()
	s, err := lab.NewStar(lab.StarConfig{Hosts: lab.MaxHosts})
	if err != nil {
		t.Fatal(err)
	}
	up := time.Since(start)
	exchange(t, s.Hosts[0], s.Hosts[lab.MaxHosts-1], v4, 10)
	exchange(t, s.Hosts[31], s.Hosts[32], v6, 10)
	start = time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d hosts: up in %v, closed in %v", lab.MaxHosts, up, time.Since(start))
}

// TestFirstPacketIsResolved: right after setup, neighbour resolution needs no
// retransmission, which would take a second.
func TestFirstPacketIsResolved(t *testing.T) {
	for range 10 {
		s, machine := labtest.Star(t, lab.StarConfig{Hosts: 3}), labtest.Watch()
		for _, addr := range []func(lab.Host) netip.Addr{v6, v4} {
			start := time.Now()
			exchange(t, s.Hosts[0], s.Hosts[2], addr, 10)
			if d := time.Since(start); d > 900*time.Millisecond {
				machine.Timing(t, "first exchange by %s took %v", addr(s.Hosts[0]), d)
			}
		}
	}
}
