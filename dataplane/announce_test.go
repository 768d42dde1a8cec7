// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Each announcement is sent three times, many of them no faster than the pace, and
// one that is asked for again before it was sent is sent once.
func TestAnnouncementsArePaced(t *testing.T) {
	a := newAnnouncer()
	const n = 1000
	for range 2 {
		for i := range n {
			a.add(0, announcement{port: i % 4, group: netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})})
		}
	}
	sent := map[announcement]int{}
	total := 0
	now := time.Duration(0)
	for {
		at, ok := a.next()
		if !ok {
			break
		}
		if total > 0 && at-now < announceInterval {
			t.Fatalf("the next ones are sent %v after the last ones", at-now)
		}
		now = max(now, at)
		xs := a.due(now)
		if len(xs) == 0 || len(xs) > announceBatch {
			t.Fatalf("at %v %d announcements", now, len(xs))
		}
		for _, x := range xs {
			sent[x]++
			total++
		}
	}
	if len(sent) != n || total != n*len(announceAfter) {
		t.Errorf("%d of %d groups announced, %d times in all", len(sent), n, total)
	}
	if least := time.Duration(total/announceBatch-1) * announceInterval; now < least || now > 2*least {
		t.Errorf("all are sent after %v, want %v or a little more", now, least)
	}
	a.add(now, announcement{group: fakeGroup(0)})
	if at, ok := a.next(); !ok || at > now+announceInterval {
		t.Errorf("the next one is sent %v later, %v", at-now, ok)
	}
}

// What is announced: the group's address is at the port's MAC, for everybody.
func TestAnnouncementFrames(t *testing.T) {
	mac := rocev2.MAC{2, 0, 0, 0, 1, 7}
	for _, group := range []netip.Addr{fakeGroup(0), netip.MustParseAddr("fd00:77::1")} {
		for _, vlan := range []uint16{0, 42} {
			var f rocev2.Frame
			b := make([]byte, 128)
			n := buildAnnouncement(b, &announcement{vlan: vlan, group: group}, mac)
			if r := rocev2.Decode(b[:n], &f); r != rocev2.OK {
				t.Fatalf("%v: %v", group, r)
			}
			if tags, tci := f.VLAN(); f.Eth().Src() != mac || (vlan != 0) != (tags == 1) || tci != vlan {
				t.Errorf("%v in VLAN %d: from %v, %d tags, VID %d", group, vlan, f.Eth().Src(), tags, tci)
			}
			if group.Is6() {
				if f.Kind != rocev2.KindICMPv6 || f.Src() != group || f.Dst() != netip.IPv6LinkLocalAllNodes() {
					t.Errorf("kind %v from %v to %v", f.Kind, f.Src(), f.Dst())
				}
				continue
			}
			var arp rocev2.ARP
			if r := rocev2.DecodeARP(&f, &arp); r != rocev2.OK || arp.SenderIP != group || arp.TargetIP != group || arp.SenderMAC != mac || f.Eth().Dst() != rocev2.BroadcastMAC {
				t.Errorf("%v: %+v", r, arp)
			}
		}
	}
}

// Registration and a member's move ask for announcements where members are.
func TestAnnouncementsFollowMembers(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.control.do(func() {
		f.know(3)
		f.register1(0, 3)
		a := f.control.announcer
		for pi := range 4 {
			if x := (announcement{port: pi, group: fakeGroup(0)}); a.queued[x] != (pi < 3) {
				t.Errorf("port %d: announced %v", pi, a.queued[x])
			}
		}
		a.queued = map[announcement]bool{}
		h := f.control.dir.hosts.byIP[fakeHost(2)]
		at, _ := f.locator.Locate(h.ip)
		at.Ifindex, at.Links = 4, []int{4} // by another route
		f.control.dir.hostAnswered(h, at, nil, f.control.now())
		if len(a.queued) != 1 || !a.queued[announcement{port: 3, group: fakeGroup(0)}] {
			t.Errorf("after a move: %v", a.queued)
		}
		a.queued = map[announcement]bool{}
		f.control.announcePort(f.control.workers.ports[1])
		if len(a.queued) != 1 || !a.queued[announcement{port: 1, group: fakeGroup(0)}] {
			t.Errorf("port 1 comes up: %v", a.queued)
		}
	})
}
