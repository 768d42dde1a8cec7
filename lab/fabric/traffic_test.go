// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// send sends frames from a host, as they are.
func send(t *testing.T, h *fabric.Host, frames ...[]byte) {
	t.Helper()
	err := h.NS.Do(func() error {
		i, err := net.InterfaceByName(fabric.HostInterface)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, b := range frames {
			if err := unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTraffic: every link counts the frames of each class, in the direction in which they go,
// over IPv4 and IPv6, whether or not it loses them.
func TestTraffic(t *testing.T) {
	top, err := fabric.Parse([]byte(`
switches: [l1, l2]
hosts: [h1, h2]
links:
  - {a: l1, b: l2}
  - {a: h1, b: l1, loss: 20%}
  - {a: l2, b: h2}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := labtest.Fabric(t, fabric.Config{Topology: top, Count: true})
	routed(t, f)
	everyHostPingsEveryOther(t, f)
	h := f.Hosts[0]
	traffic := func(a, b string) fabric.Traffic {
		t.Helper()
		x, err := f.Traffic(a, b)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := traffic("l1", "l2"); x.Other.Frames < 4 || x.Other.Bytes < 4*60 {
		t.Errorf("pings from l1 to l2: %+v", x)
	}
	before, back := traffic("h1", "l1"), traffic("l1", "h1")

	// Each class has another number of frames.
	build := func(op rocev2.Opcode, src, dst netip.Addr) []byte {
		p := rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), Src: src, Dst: dst, TTL: 1}
		payload := make([]byte, 16)
		if op == rocev2.Acknowledge {
			payload = nil
		}
		b := make([]byte, rocev2.PacketLen(&p, op, len(payload)))
		return b[:rocev2.BuildPacket(b, &p, &rocev2.Packet{Op: op}, payload)]
	}
	elsewhere4, elsewhere6 := f.Hosts[1].IPv4, f.Hosts[1].IPv6
	group4, group6 := fabric.GroupsIPv4.Addr().Next(), fabric.GroupsIPv6.Addr().Next()
	var frames [][]byte
	want := fabric.Traffic{}
	add := func(to *fabric.Frames, times int, b []byte) {
		for range times {
			frames = append(frames, b)
			to.Frames++
			to.Bytes += uint64(len(b))
		}
	}
	for _, v := range []struct{ own, group, other netip.Addr }{{h.IPv4, group4, elsewhere4}, {h.IPv6, group6, elsewhere6}} {
		add(&want.GroupData, 1, build(rocev2.SendOnly, v.own, v.group))
		add(&want.GroupData, 2, build(rocev2.WriteMiddle, v.group, v.other))
		add(&want.GroupFeedback, 4, build(rocev2.Acknowledge, v.own, v.group))
		add(&want.GroupFeedback, 5, build(rocev2.CNP, v.group, v.own))
		add(&want.Data, 6, build(rocev2.WriteLast, v.own, v.other))
		add(&want.Feedback, 7, build(rocev2.Acknowledge, v.own, v.other))
		p := rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), Src: v.own, Dst: v.group, TTL: 1}
		b := make([]byte, 256)
		add(&want.Envelopes, 8, b[:rocev2.BuildUDP(b, &p, 4797, make([]byte, 64))])
		b = make([]byte, 256)
		add(&want.Other, 3, b[:rocev2.BuildUDP(b, &p, 4798, make([]byte, 64))])
	}
	send(t, h, frames...)
	var got fabric.Traffic
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		got = traffic("h1", "l1").Sub(before)
		// The kernel sends frames of its own, such as neighbour solicitations.
		other := got.Other
		got.Other = want.Other
		if got == want && other.Frames >= want.Other.Frames {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("h1 to l1: %+v, want %+v", got, want)
		}
	}
	if x := traffic("l1", "h1").Sub(back); x.GroupData.Frames+x.GroupFeedback.Frames+x.Data.Frames+x.Feedback.Frames+x.Envelopes.Frames > 0 {
		t.Errorf("l1 to h1: %+v", x)
	}
	if _, err := f.Traffic("h1", "h2"); err == nil {
		t.Error("traffic of a link that is not there")
	}
}

// TestTrafficIsNotCounted: without Count there is an error, and no wire.
func TestTrafficIsNotCounted(t *testing.T) {
	f := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(1, 1, 1)})
	if _, err := f.Traffic("l1", "s1"); err == nil {
		t.Error("no error")
	}
}
