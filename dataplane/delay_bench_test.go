// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// BenchmarkLook is what a worker spends on a look, at 1,000 groups of 512 members in turn that all
// have outstanding packets: no receiver has acknowledged them, or all but the last one have; before
// the look it was another one; nothing has been acknowledged for a second.
func BenchmarkLook(b *testing.B) {
	const groups, members = 1000, 512
	x := newBench(b, 4)
	w := x.w
	for i := range groups {
		id := mcast.GroupID(1 + i)
		spec := mcast.GroupSpec{ID: id, IP: netip.AddrFrom4([4]byte{10, 78, byte(i >> 8), byte(i)}), GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}}
		table := groupTable{ip: spec.IP, qpn: 0x4711}
		for k := range members {
			ip := netip.AddrFrom4([4]byte{10, 79, byte(k >> 8), byte(k)})
			spec.Legs = append(spec.Legs, mcast.LegSpec{Port: mcast.Port(k % 4)})
			spec.Members = append(spec.Members, mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: ip, QPN: rocev2.QPN(0x10 + k)}, Leg: mcast.LegID(k)})
			table.legs = append(table.legs, leg{port: k % 4, ip: rocev2.KeyOf(ip), qpn: rocev2.QPN(0x10 + k), live: 1})
		}
		if err := w.putGroup(spec, table); err != nil {
			b.Fatal(err)
		}
	}
	serve := func(id, host int, p mcast.Packet) {
		p.Group, p.Src, p.DestQP, p.Port, p.Verified = w.groups[id].ip, w.groups[id].members[host].ip, 0x4711, mcast.Port(host%4), true
		w.core.Input(w.now, &p, &w.out)
		if w.out.Drop != mcast.None {
			b.Fatalf("group %d, member %d: %v", id, host, w.out.Drop)
		}
		for i := range w.out.Events {
			w.meterEvent(&w.out.Events[i])
		}
		if host == 0 {
			w.meterData(w.now, mcast.GroupID(id), &p)
		}
	}
	for id := 1; id <= groups; id++ {
		for psn := range rocev2.PSN(2) {
			serve(id, 0, mcast.Packet{Op: rocev2.SendOnly, PSN: psn, AckReq: true})
		}
	}
	look := func(name string, stalled time.Duration, before func(*delayed)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				id := mcast.GroupID(1 + i%groups)
				d := &w.delays.groups[id]
				before(d)
				w.lookAt(id, d, stalled)
			}
		})
	}
	same := func(*delayed) {}
	look("all are awaited", 0, same)
	look("all are awaited, stalled", time.Second, same)
	for id := 1; id <= groups; id++ {
		for host := 1; host < members-1; host++ {
			serve(id, host, mcast.Packet{Op: rocev2.Acknowledge, PSN: 1, Syndrome: rocev2.SyndromeACK})
		}
	}
	look("one is awaited", 0, same)
	look("one is awaited, and the members are read", 0, func(d *delayed) { w.now += readInterval })
	look("one is awaited, stalled", time.Second, same)
	if d := w.delays.groups[1]; d.Member != members-1 || d.Legs != 1 {
		b.Errorf("%+v", d)
	}
}
