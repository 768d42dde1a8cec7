// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

var (
	secret = bytes.Repeat([]byte{0xA5}, 40)
	other  = bytes.Repeat([]byte{0x5A}, 32)
)

// table installs what it is asked to, after some tries.
type table struct {
	world  *world
	groups map[netip.Addr]bool
}

func (t *table) Install(r *envelope.Registration, _ envelope.KeyID) envelope.Verdict {
	k := r.Members[t.world.r.IntN(len(r.Members))].Key()
	switch n := t.world.r.IntN(100); {
	case n < 10:
		return envelope.Verdict{Kind: envelope.VerdictLater, Problem: envelope.Problem{Reason: envelope.LocationUnconfirmed, Member: k, Value: 0x020304050607}}
	case n < 12:
		return envelope.Verdict{Kind: envelope.VerdictRejected, Problem: envelope.Problem{Reason: envelope.Reason(t.world.r.IntN(int(envelope.NumReasons))), Member: k, Value: t.world.r.Uint64N(9)}}
	}
	t.groups[r.Group] = true
	return envelope.Verdict{Kind: envelope.VerdictAccepted}
}

func (t *table) Remove(ip netip.Addr, _ envelope.EndReason)                      { delete(t.groups, ip) }
func (t *table) RemoveMember(netip.Addr, envelope.MemberKey, envelope.EndReason) {}
func (t *table) HadSource(netip.Addr) bool                                       { return t.world.r.IntN(8) == 0 }
func (t *table) FromMember(_, _ netip.Addr, _ envelope.KeyID, _ bool) bool {
	return t.world.r.IntN(200) > 0
}

type flight struct {
	at time.Duration
	envelope.Packet
}

// world joins a registrar and the machines of hosts by a network that loses, copies,
// delays, damages and forges.
type world struct {
	t        *testing.T
	r        *rand.Rand
	now      time.Duration
	sw       *envelope.Registrar
	table    *table
	boots    uint64
	hosts    map[netip.AddrPort]*twin
	order    []netip.AddrPort
	net      []flight
	captured []envelope.Packet
	loss     int // percent
	v6       bool
	group    netip.Addr
	auth     envelope.Auth
	c        *process
}

func newWorld(t *testing.T, c *process, seed uint64) *world {
	w := &world{t: t, c: c, r: rand.New(rand.NewPCG(seed, 1)), hosts: map[netip.AddrPort]*twin{}}
	w.v6 = w.r.IntN(3) == 0
	w.loss = []int{0, 5, 30}[w.r.IntN(3)]
	w.group = netip.MustParseAddr("10.9.0.1")
	if w.v6 {
		w.group = netip.MustParseAddr("fd00:9::1")
	}
	w.auth = envelope.Auth{Keys: envelope.Keys{7: secret}, Send: 7}
	if w.r.IntN(4) == 0 {
		w.auth = envelope.Auth{Insecure: true}
		c.ask("key 0 -")
	} else {
		c.ask("key 7 %x", secret)
	}
	w.boot()
	return w
}

// boot makes a switch that remembers nothing, and has a newer clock.
func (w *world) boot() {
	w.boots++
	w.table = &table{w, map[netip.Addr]bool{}}
	cfg := envelope.RegistrarConfig{
		EpochBase: w.boots * 1000, Auth: w.auth, Seed: w.boots, HintInterval: time.Second, MinLease: time.Second, DefaultLease: 3 * time.Second,
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("fd00:9::/64")},
	}
	if !w.auth.Insecure {
		cfg.Auth.Keys = envelope.Keys{7: secret, 8: other}
	}
	cfg.Secret[0] = byte(w.boots)
	var err error
	if w.sw, err = envelope.NewRegistrar(cfg, w.table); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ip(i int) netip.Addr {
	if w.v6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(i >> 8), 15: byte(i)})
	}
	return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
}

func (w *world) record(i int, windows bool) envelope.MemberRecord {
	m := envelope.MemberRecord{IP: w.ip(i), QPN: rocev2.QPN(0x100 + w.r.IntN(9)), SQPSN: 0xfffff0, RQPSN: rocev2.PSN(w.r.IntN(2)), ReceiveOnly: w.r.IntN(4) == 0 && i > 1}
	if windows {
		m.Window = mcast.Window{Base: 0x7000 + uint64(i), Len: 4096, RKey: uint32(w.r.IntN(1000) + 1)}
	}
	return m
}

// registration is one that mostly can be registered.
func (w *world) registration(n int) envelope.Registration {
	windows := w.r.IntN(2) == 0
	r := envelope.Registration{
		Group: w.group, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Policy(w.r.IntN(3)), SenderTimeout: 14, SenderRetries: 7},
		Lease: []time.Duration{0, 2, 20, 20}[w.r.IntN(4)] * time.Second, NoRepair: w.r.IntN(2) == 0,
	}
	if r.Policy == mcast.Quorum {
		r.Quorum = 1
	}
	if r.Policy != mcast.Strict {
		r.DeadAfter, r.LagPSNs, r.LagTime = 100*time.Millisecond, w.r.IntN(100), time.Duration(w.r.IntN(2))*time.Second
	}
	if windows {
		r.Window = mcast.Window{Base: 0x1000, Len: 2048, RKey: 5}
	}
	if r.Policy != mcast.Quorum && w.r.IntN(3) == 0 {
		r.TargetKey = 6
	}
	for i := 1; i <= n; i++ {
		r.Members = append(r.Members, w.record(i, windows))
	}
	return r
}

// addMaster makes a master for a registration, nil if that is faulty.
func (w *world) addMaster(number int, r envelope.Registration) *twin {
	x := newMaster(w.c, number, envelope.MasterConfig{
		Local: netip.AddrPortFrom(w.ip(200), uint16(5000+number)), Port: envelope.DefaultPort, Auth: w.auth, Seed: uint64(number) + w.r.Uint64N(1000),
		MTU: []int{1500, 260, 320}[w.r.IntN(3)], Deadline: 4 * time.Second,
		RenewWithin: time.Duration(w.r.IntN(3)) * 300 * time.Millisecond,
	}, r)
	if x != nil {
		w.add(x)
	}
	return x
}

func (w *world) add(x *twin) {
	if w.hosts[x.local] == nil {
		w.order = append(w.order, x.local)
	}
	w.hosts[x.local] = x
}

// addMember makes the host of a record, or joins anew with the one that is there.
func (w *world) addMember(number int, m envelope.MemberRecord, r *envelope.Registration) {
	at := netip.AddrPortFrom(m.IP, envelope.DefaultPort)
	x := w.hosts[at]
	if x == nil {
		x = newMember(w.c, number, envelope.MemberConfig{Local: at, Port: envelope.DefaultPort, Auth: w.auth, Seed: uint64(number), Deadline: 3 * time.Second, AskEvery: time.Duration(w.r.IntN(3)) * 200 * time.Millisecond})
		w.add(x)
	}
	x.join(envelope.Membership{MemberRecord: m, Group: r.Group, VirtualQPN: r.QPN, PathMTU: r.PathMTU})
}

// send puts what a machine wants sent on the network.
func (w *world) send(out *envelope.Output) {
	for _, p := range out.Packets {
		w.captured = append(w.captured, p)
		for copies := 1 + w.r.IntN(10)/9; copies > 0; copies-- {
			if w.r.IntN(100) < w.loss {
				continue
			}
			q := envelope.Packet{Src: p.Src, Dst: p.Dst, Data: slices.Clone(p.Data)}
			if w.r.IntN(60) == 0 {
				q.Data[w.r.IntN(len(q.Data))] ^= 1 << w.r.IntN(8)
			}
			if w.r.IntN(80) == 0 {
				q.Data = q.Data[:w.r.IntN(len(q.Data))]
			}
			w.net = append(w.net, flight{w.now + time.Duration(w.r.IntN(40))*time.Millisecond, q})
		}
	}
}

func (w *world) deliver(p envelope.Packet) {
	if w.sw.Serves(p.Dst.Addr()) {
		var out envelope.Output
		w.sw.Input(w.now, p.Src, p.Data, &out)
		w.send(&out)
	} else if x := w.hosts[p.Dst]; x != nil {
		x.input(w.now, p.Src, p.Data)
		w.send(&x.out)
	}
}

// run lets all happen that is due within a time.
func (w *world) run(d time.Duration) {
	limit := w.now + d
	for {
		next, act := limit, func() {}
		due := func(t time.Duration, ok bool, f func()) {
			if ok && t < next {
				next, act = max(t, w.now), f
			}
		}
		if len(w.net) > 0 {
			slices.SortStableFunc(w.net, func(a, b flight) int { return cmp.Compare(a.at, b.at) })
			due(w.net[0].at, true, func() {
				p := w.net[0].Packet
				w.net = w.net[1:]
				w.deliver(p)
			})
		}
		t, ok := w.sw.NextDeadline()
		due(t, ok, func() {
			var out envelope.Output
			w.sw.Advance(w.now, &out)
			w.send(&out)
		})
		for _, a := range w.order {
			x := w.hosts[a]
			t, ok := x.machine().NextDeadline()
			due(t, ok, func() {
				x.advance(w.now)
				w.send(&x.out)
			})
		}
		w.now = next
		if act(); next == limit {
			return
		}
	}
}
