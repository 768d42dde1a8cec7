// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// variety is the number of different addresses or numbers in the frames of a flood.
const variety = 1024

// stranger is one of very many addresses of no host, with a MAC address.
func (a *attacker) stranger(i int) (netip.Addr, rocev2.MAC) {
	mac := rocev2.MAC{0x0A, 0x67}
	binary.BigEndian.PutUint32(mac[2:], uint32(i))
	if a.r.c.v6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 12: 9, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}), mac
	}
	return netip.AddrFrom4([4]byte{10, 77, 64 | byte(i>>8)&63, byte(i)}), mac
}

// registration is an envelope from src that registers a group of the existing hosts,
// under a key.
func (a *attacker) registration(keys envelope.Keys, src netip.Addr, mac rocev2.MAC, i int) []byte {
	a.r.t.Helper()
	body := &envelope.Register{GroupBody: envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: virtualQPN, PathMTU: 1024}, TotalMembers: len(a.r.hosts)}}
	for _, h := range a.r.hosts {
		body.Members = append(body.Members, envelope.MemberRecord{IP: h.ip, QPN: h.qp.Info().QPN})
	}
	group := a.r.group.Next()
	data, err := envelope.Append(nil, &envelope.Message{Header: envelope.Header{
		Epoch: uint64(i + 1), Transaction: uint32(i), Total: 1, Group: group, ReplyTo: netip.AddrPortFrom(src, envelope.DefaultPort),
	}, Body: body}, keys, 1)
	if err != nil {
		a.r.t.Fatal(err)
	}
	p := a.groupPath(src)
	p.SrcMAC, p.Dst = mac, group
	b := make([]byte, len(data)+256)
	return b[:rocev2.BuildUDP(b, &p, envelope.DefaultPort, data)]
}

var wrongKeys = envelope.Keys{1: bytes.Repeat([]byte{9, 8, 7, 6}, 8)}

// kind is one kind of flood: frames that are sent in turn.
type kind struct {
	name   string
	frames func(a *attacker) [][]byte
}

// registrations differ in the switch's work before it rejects them.
var registrations = []kind{
	{"one address and a wrong MAC", func(a *attacker) [][]byte {
		return [][]byte{a.registration(wrongKeys, a.ip, rocev2.MAC(a.MAC), 0)}
	}},
	{"random addresses and a wrong MAC", func(a *attacker) [][]byte {
		return a.various(func(i int, src netip.Addr, mac rocev2.MAC) []byte { return a.registration(wrongKeys, src, mac, i) })
	}},
	// Of a host that has the key, or has recorded one that has: each is challenged.
	{"random addresses and a right MAC", func(a *attacker) [][]byte {
		return a.various(func(i int, src netip.Addr, mac rocev2.MAC) []byte {
			return a.registration(testAuth().Keys, src, mac, i)
		})
	}},
}

// various are frames of very many addresses.
func (a *attacker) various(frame func(i int, src netip.Addr, mac rocev2.MAC) []byte) (list [][]byte) {
	for i := range variety {
		src, mac := a.stranger(i)
		list = append(list, frame(i, src, mac))
	}
	return list
}

// others are the other kinds of floods of a stranger.
var others = []kind{
	{"data and acknowledgements in a member's name", func(a *attacker) [][]byte {
		return [][]byte{
			a.roce(a.groupPath(a.r.hosts[0].ip), rocev2.Packet{Op: rocev2.WriteOnly, DestQP: virtualQPN, VA: groupBase, RKey: groupRKey, DMALen: 64}, 64),
			a.roce(a.groupPath(a.r.hosts[1].ip), rocev2.Packet{Op: rocev2.Acknowledge, DestQP: virtualQPN, Syndrome: rocev2.SyndromeACK}, 0),
		}
	}},
	{"random MAC addresses", func(a *attacker) [][]byte {
		return a.various(func(_ int, _ netip.Addr, mac rocev2.MAC) []byte {
			b := a.harmless(60)
			m := a.portMAC()
			copy(b, m[:])
			copy(b[6:], mac[:])
			return b
		})
	}},
	{"requests for the group's address", func(a *attacker) [][]byte { return [][]byte{a.asksFor(a.r.group)} }},
}

// eachFlood runs f for each kind of flood, in each kind of network. Without GLEAM_FLOODS
// it runs f for all kinds in turn as one flood, in the networks whose names are short, or in CI in those that have their turn.
func eachFlood(t *testing.T, short []string, kinds []kind, f func(t *testing.T, r *rig, a *attacker, frame func(i int) []byte)) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		run := func(t *testing.T, kinds []kind) {
			r := newRig(t, c)
			r.join()
			a := r.attacker(0)
			var frames [][][]byte
			for _, k := range kinds {
				frames = append(frames, k.frames(a))
			}
			f(t, r, a, func(i int) []byte {
				of := frames[i%len(frames)]
				return of[i/len(frames)%len(of)]
			})
		}
		if floodRounds(t) == 0 {
			if os.Getenv("GLEAM_SAMPLE") == "" && !slices.ContainsFunc(short, func(name string) bool { return strings.HasSuffix(t.Name(), name) }) {
				t.Skip("GLEAM_FLOODS is not set")
			}
			run(t, kinds)
			return
		}
		for _, k := range kinds {
			t.Run(k.name, func(t *testing.T) { run(t, []kind{k}) })
		}
	})
}

// Floods of registrations cost a running transfer as much as the same number of
// harmless frames, and hosts at other ports join groups meanwhile.
func TestFloodsOfRegistrations(t *testing.T) {
	const most = 2 * time.Second // a request that is lost is repeated after 0.2 s
	eachFlood(t, []string{"bridged_IPv4", "routed_IPv6"}, registrations, func(t *testing.T, r *rig, a *attacker, frame func(i int) []byte) {
		r.withstands(t, a, 50_000, frame)
		machine := labtest.Watch()
		calm := r.joins(t, 0, 1, 2)
		before := r.stats().Control
		f := a.flood(50_000, 0, frame)
		begin := time.Now()
		hostile := r.joins(t, 0, 1, 2)
		time.Sleep(floodSlice)
		after, took := r.stats().Control, time.Since(begin).Seconds()
		n, rate := f.end(t)
		iterations, lookups := float64(after.Iterations-before.Iterations)/took, float64(after.Lookups-before.Lookups)/took
		t.Logf("joining takes %v, and %v beside %d registrations at %.0f/s; %.0f iterations of the control loop a second, %.0f lookups in the kernel",
			calm, hostile, n, rate, iterations, lookups)
		// Besides those of the flood there are some of the groups that are joined.
		if iterations > 2000 || lookups > 1500 {
			t.Errorf("the flood causes %.0f iterations of the control loop and %.0f lookups in the kernel a second", iterations, lookups)
		}
		if hostile > most && hostile > 2*calm {
			machine.Timing(t, "joining takes %v, want %v; without the flood %v", hostile, most, calm)
		}
		if d := r.drops(); d["rate_limit"] == 0 || a.xdp("xsk_envelope") == 0 {
			t.Errorf("the flood has not come to the switch: %v", d)
		}
		if r.lines("envelope refused") > 2*len(registrations) {
			t.Errorf("%d lines about refused envelopes", r.lines("envelope refused"))
		}
	})
}

// A host joins groups as their master behind the port of a stranger that floods the switch
// with registrations.
func TestFloodBehindTheMastersPort(t *testing.T) {
	const most = 2 * time.Second
	for _, v6 := range []bool{false, true} {
		r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4, Rack: 2}, strangers: 1, v6: v6})
		a := r.attacker(0)
		if a.Port != r.hosts[2].Port {
			t.Fatalf("the stranger is behind %s, the master behind %s", a.Port, r.hosts[2].Port)
		}
		machine := labtest.Watch()
		kinds := registrations[:1]
		if floodRounds(t) > 0 {
			kinds = registrations // random addresses take the port's whole rate: luck decides
		}
		for _, k := range kinds {
			frames := k.frames(a)
			f := a.flood(50_000, 0, func(i int) []byte { return frames[i%len(frames)] })
			took := r.joins(t, 2, 0, 1)
			n, rate := f.end(t)
			t.Logf("IPv6 %v: joining takes %v beside %d registrations of %s at %.0f/s", v6, took, n, k.name, rate)
			if took > most {
				machine.Timing(t, "IPv6 %v, %s: joining takes %v, want %v", v6, k.name, took, most)
			}
		}
	}
}

// joins has these hosts join some more groups, the first as the master, and returns the
// longest time that it took.
func (r *rig) joins(t *testing.T, hosts ...int) (longest time.Duration) {
	t.Helper()
	for range 2 {
		r.joined++
		group := r.group
		for range r.joined + 1 { // that of the flood comes first
			group = group.Next()
		}
		o := r.another(group, hosts...)
		start := time.Now()
		groups := o.joinByMaster(nil)
		longest = max(longest, time.Since(start))
		for _, g := range groups {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	return longest
}

// lines counts the switch's lines that contain text.
func (r *rig) lines(text string) (n int) { return r.notes.count(text) }

// Other floods cost no more either.
func TestFloodsOfOthers(t *testing.T) {
	eachFlood(t, []string{"bridged_IPv4"}, others, func(t *testing.T, r *rig, a *attacker, frame func(i int) []byte) {
		r.withstands(t, a, 50_000, frame)
	})
}
