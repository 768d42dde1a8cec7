// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
)

// fakeGuard has the guard's counters of a port.
type fakeGuard struct {
	n   bpf.Counters
	mac byte // the last of the offender's address
}

func (f *fakeGuard) Count(r bpf.Reason) (uint64, error) { return f.n[r], nil }
func (f *fakeGuard) LastOffender(bpf.Reason) (mac [6]byte, err error) {
	mac[5] = f.mac
	return mac, nil
}

// What the guard drops is told at once, with port, MAC address and reason, and a flood
// as one line per interval. Ports and reasons do not hide each other, and what is no
// offence is not told.
func TestGuardWatch(t *testing.T) {
	var said []string
	a, b := &fakeGuard{}, &fakeGuard{}
	g := newPortGuardLog(nil, func(warn bool, _ string, kv ...any) {
		said = append(said, fmt.Sprintf("%v %v %v %v %v", warn, kv[1], kv[3], kv[5], kv[7]))
	})
	g.ports = []guardedPort{{name: "p1", counters: a}, {name: "p2", counters: b}}
	g.sampler = newSampler[guardDrop](2*int(bpf.NumReasons), guardLogInterval)
	look := func(now time.Duration, want ...string) {
		t.Helper()
		said = nil
		if g.poll(now); !slices.Equal(said, want) {
			t.Errorf("at %v: %q is said, want %q", now, said, want)
		}
	}
	look(0)
	a.n[bpf.PassOther], a.n[bpf.DropNoSocket] = 7, 7
	look(time.Second)
	a.n[bpf.DropGuardIPv4], a.mac = 3, 9
	look(2*time.Second, "true p1 00:00:00:00:00:09 drop_guard_ipv4 3")
	for i := range 9 {
		a.n[bpf.DropGuardIPv4] += 50_000
		a.mac = byte(i)
		look(time.Duration(3+i) * time.Second)
	}
	b.n[bpf.DropGuardIPv4], b.mac = 1, 5
	a.n[bpf.DropGuardARP], a.mac = 2, 6
	look(12*time.Second, "true p1 00:00:00:00:00:06 drop_guard_arp 2", "true p2 00:00:00:00:00:05 drop_guard_ipv4 1",
		"true p1 00:00:00:00:00:08 drop_guard_ipv4 450003")
	look(30 * time.Second)
	list := make([]api.Port, 2)
	g.describe(list)
	if last := list[0].Guard["drop_guard_arp"]; last.MAC != "00:00:00:00:00:06" || last.Time.IsZero() || len(list[0].Guard) != 2 || len(list[1].Guard) != 1 {
		t.Errorf("the API has %+v", list)
	}
}

// Announcements of the switch that come back by a second link are no attack while the bridge blocks
// it, and named for what they are else; frames that count for another VLAN since the interface
// takes tags off are named so.
func TestGuardKnowsItsOwn(t *testing.T) {
	var said []string
	a, b := &fakeGuard{}, &fakeGuard{}
	g := newPortGuardLog(nil, func(_ bool, _ string, kv ...any) { said = append(said, fmt.Sprintf("%v: %v", kv[1], kv[9])) })
	g.ports = []guardedPort{{name: "p1", counters: a, mac: [6]byte{5: 1}}, {name: "p2", counters: b, mac: [6]byte{5: 2}, blocked: true}}
	g.sampler = newSampler[guardDrop](2*int(bpf.NumReasons), guardLogInterval)
	g.strips = func(port string) bool { return port == "p2" }
	look := func(now time.Duration, want ...string) {
		t.Helper()
		said = nil
		g.poll(now)
		for i, w := range want {
			if i >= len(said) || !strings.HasPrefix(said[i], w) {
				t.Errorf("at %v: %q is said, want %q", now, said, want)
				return
			}
		}
		if len(said) != len(want) {
			t.Errorf("at %v: %q is said, want %q", now, said, want)
		}
	}
	b.n[bpf.DropGuardARP], b.mac = 3, 1
	look(time.Second)
	b.n[bpf.DropGuardARP], b.mac = 4, 9
	look(2*time.Second, "p2: ARP or RARP whose sender is an address in a group prefix")
	a.n[bpf.DropGuardARP], a.mac = 1, 2
	look(3*time.Second, "p1: the last one has the MAC address of a port of this switch: its announcements come back")
	a.n[bpf.DropPortVLAN], a.mac, b.n[bpf.DropPortVLAN] = 1, 9, 1
	look(4*time.Second, "p1: for gleamd, in a VLAN that the port", "p2: the interface takes VLAN tags off before XDP sees the frames")
}
