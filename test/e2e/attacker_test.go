// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// The attackers' kit. A rig with rigConfig.strangers has hosts that are in no
// group, each behind a port of its own:
//
//	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) { // bridged and routed, IPv4 and IPv6
//		r := newRig(t, c)
//		r.join()
//		a := r.attacker(0)
//		r.withstands(t, a, 50_000, func(i int) []byte { … })
//	})
//
// An attacker builds and sends any frame (send, roce, flood), and sees what its host
// receives (next, expect). Where it needs a soft device: r.open(n, host). A watch
// (watch_test.go) checks a running transfer meanwhile; withstands (goodput_test.go) measures
// what a flood leaves of it.

// inNetworks runs f in a subtest for each kind of network: bridged and routed
// switch ports, IPv4 and IPv6. In CI a run has bridged with one of these, and routed with the other one.
func inNetworks(t *testing.T, members, strangers int, f func(t *testing.T, c rigConfig)) {
	inNetworksThat(t, []bool{false, true}, members, strangers, f)
}

// inNetworksThat is inNetworks for some of bridged (false) and routed (true).
func inNetworksThat(t *testing.T, route []bool, members, strangers int, f func(t *testing.T, c rigConfig)) {
	for _, routed := range route {
		for _, v6 := range []bool{false, true} {
			if !labtest.InTurn(t, map[bool]int{false: 0, true: 1}[routed != v6], 2) {
				continue
			}
			name := map[bool]string{false: "bridged", true: "routed"}[routed] + " " + map[bool]string{false: "IPv4", true: "IPv6"}[v6]
			t.Run(name, func(t *testing.T) {
				f(t, rigConfig{star: lab.StarConfig{Hosts: members + strangers, NoBridge: routed}, strangers: strangers, v6: v6})
			})
		}
	}
}

// attacker is a host of the star that is in no group, with a tap at its interface.
type attacker struct {
	*tap
	lab.Host
	r  *rig
	ip netip.Addr // its own, of the rig's family
	n  int        // number of its port in rig.ports()
	// beside are harmless frames to compare a flood with, none for one that no bridge
	// forwards. A broadcast costs the network a copy for each host.
	beside [][]byte
}

// attacker returns stranger i of the rig.
func (r *rig) attacker(i int) *attacker {
	r.t.Helper()
	h := r.star.Hosts[len(r.star.Hosts)-r.c.strangers+i]
	a := &attacker{tap: newTap(r.t, h), Host: h, r: r, ip: h.IPv4}
	a.n = slices.IndexFunc(r.ports(), func(p api.Port) bool { return p.Name == h.Port })
	if r.c.v6 {
		a.ip = h.IPv6
	}
	return a
}

// path leads from src to host h of the rig, by the first hop that the attacker's
// kernel would take: the host itself behind a bridge, else the switch's port.
func (a *attacker) path(src netip.Addr, h *rigHost) rocev2.Path {
	p := rocev2.Path{SrcMAC: rocev2.MAC(a.MAC), DstMAC: rocev2.MAC(h.MAC), Src: src, Dst: h.ip, SrcPort: 0xC123}
	if a.r.c.star.NoBridge {
		p.DstMAC = a.portMAC()
	}
	return p
}

// groupPath leads from src to the group.
func (a *attacker) groupPath(src netip.Addr) rocev2.Path {
	return rocev2.Path{SrcMAC: rocev2.MAC(a.MAC), DstMAC: a.portMAC(), Src: src, Dst: a.r.group, SrcPort: 0xC123}
}

// portMAC is the MAC address of the switch's port that the attacker is behind.
func (a *attacker) portMAC() rocev2.MAC { return a.r.portMAC(a.n) }

// portMAC is the MAC address of the switch's port i.
func (r *rig) portMAC(i int) (m rocev2.MAC) {
	r.t.Helper()
	if _, err := fmt.Sscanf(r.ports()[i].MAC, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// roce builds a RoCEv2 packet with n bytes of payload, 0xEE each.
func (a *attacker) roce(p rocev2.Path, k rocev2.Packet, n int) []byte {
	a.r.t.Helper()
	b := make([]byte, n+256)
	if n = rocev2.BuildPacket(b, &p, &k, bytes.Repeat([]byte{0xEE}, n)); n == 0 {
		a.r.t.Fatalf("no such packet: %+v", k)
	}
	return b[:n]
}

// xdp returns a counter of the XDP program at the attacker's port.
func (a *attacker) xdp(name string) uint64 {
	a.r.t.Helper()
	return a.r.ports()[a.n].XDP[name] // those that are 0 are not listed
}

// flood is a stream of an attacker's frames.
type flood struct {
	stop, ended chan struct{}
	sent        int
	took        time.Duration
	cpu         time.Duration // used by the generator, with the kernel's immediate work for its frames
	err         error
}

// flood sends frame(0), frame(1), … at rate frames a second until end, and no more than
// count of them (0: 2 million). frame may return the same slice each time. It sends in
// bursts of a millisecond's worth.
func (a *attacker) flood(rate, count int, frame func(i int) []byte) *flood {
	f := &flood{stop: make(chan struct{}), ended: make(chan struct{})}
	if count == 0 {
		count = 2_000_000
	}
	go func() {
		defer close(f.ended)
		runtime.LockOSThread() // the thread's CPU time is the generator's
		defer runtime.UnlockOSThread()
		start, cpu := time.Now(), threadTime()
		defer func() { f.took, f.cpu = time.Since(start), threadTime()-cpu }()
		for f.sent < count {
			due := min(count, int(time.Since(start).Seconds()*float64(rate))+1)
			due = min(due, f.sent+max(1, rate/100)) // after a pause of the machine: not all at once
			for ; f.sent < due; f.sent++ {
				if _, err := unix.Write(a.fd, frame(f.sent)); err != nil && !errors.Is(err, unix.ENOBUFS) {
					f.err = err
					return
				}
			}
			select {
			case <-f.stop:
				return
			default:
				time.Sleep(time.Millisecond)
			}
		}
	}()
	return f
}

// end stops the flood and returns how many frames it has sent, at which rate.
func (f *flood) end(t testing.TB) (sent int, rate float64) {
	t.Helper()
	close(f.stop)
	<-f.ended
	if f.err != nil {
		t.Fatalf("flood: frame %d: %v", f.sent, f.err)
	}
	return f.sent, float64(f.sent) / f.took.Seconds()
}

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u) // fails for a bad argument only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// harmless is a frame that a bridge does not forward and no host receives: as costly to
// generate as any other of its length.
func (a *attacker) harmless(length int) []byte {
	b := make([]byte, max(length, 60))
	copy(b, []byte{0x01, 0x80, 0xC2, 0, 0, 0x0D}) // reserved by 802.1Q for bridges
	copy(b[6:], a.MAC)
	b[12], b[13] = 0x88, 0xB5 // for local experiments
	return b
}
