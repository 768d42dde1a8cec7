// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Whatever would change the group's state does not with a wrong ICRC: it is
// counted, nothing goes out. The same packet with the right one is believed.
func TestC9_BadICRCChangesNothing(t *testing.T) {
	b := newBench(t, 3)
	state := func() (st mcast.GroupStatus) {
		if !b.w.core.Group(0).Snapshot(&st) {
			t.Fatal("no group")
		}
		return st
	}
	for _, c := range []struct {
		name    string
		from    int
		k       rocev2.Packet
		want    int  // frames that the right packet makes go out
		changes bool // true: the packet changes what Snapshot shows of the members
	}{
		{"the first packet of a source", 0, rocev2.Packet{Op: rocev2.SendOnly, PSN: 0}, 2, true},
		{"a packet after a gap", 0, rocev2.Packet{Op: rocev2.SendOnly, PSN: 2}, 2, true},
		{"ACK", 1, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 1000, Syndrome: rocev2.SyndromeACK}, 0, true},
		{"NAK", 2, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 2001, Syndrome: rocev2.SyndromeNAKSequence}, 2, true},
		{"RNR NAK", 1, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 1001, Syndrome: rocev2.SyndromeRNR | 5}, 1, true},
		{"CNP", 1, rocev2.Packet{Op: rocev2.CNP, BECN: true}, 1, false},
		{"READ", 0, rocev2.Packet{Op: rocev2.ReadRequest, PSN: 3, VA: 1, RKey: 1, DMALen: 1}, 0, false},
		{"fatal NAK", 2, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 2001, Syndrome: rocev2.SyndromeNAKAccess}, 1, true},
	} {
		before, drops := state(), b.w.count.drop[dropBadICRC]
		var payload []byte
		if c.k.Op == rocev2.CNP {
			payload = rocev2.CNPPayload
		}
		d := b.take(c.from, &c.k, payload)
		b.w.umem.Data(d.Addr, d.Len)[d.Len-1] ^= 0x80
		b.w.servePacket(c.from, d)
		if n := b.unstage(); n != 0 {
			t.Errorf("%s with a wrong ICRC: %d frames went out", c.name, n)
		}
		if after := state(); !reflect.DeepEqual(after, before) {
			t.Errorf("%s with a wrong ICRC changed the group\nfrom %+v\n  to %+v", c.name, before, after)
		}
		if n := b.w.count.drop[dropBadICRC] - drops; n != 1 {
			t.Errorf("%s with a wrong ICRC: counted %d times; drops %v", c.name, n, b.w.count.drops())
		}
		b.w.servePacket(c.from, b.take(c.from, &c.k, payload))
		if n := b.unstage(); n != c.want {
			t.Errorf("%s: %d frames went out, want %d; drops %v", c.name, n, c.want, b.w.count.drops())
		}
		after := state()
		before.Counters, after.Counters = mcast.Counters{}, mcast.Counters{}
		if changed := !reflect.DeepEqual(after, before); changed != c.changes {
			t.Errorf("%s: changed the group: %v, want %v", c.name, changed, c.changes)
		}
	}
}

// Receivers send CNPs from UDP source port 0, or any other.
func TestC66_CNPFromPort0(t *testing.T) {
	b := newBench(t, 3)
	b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, PSN: 0}, nil))
	b.unstage()
	d := b.take(1, &rocev2.Packet{Op: rocev2.CNP, BECN: true}, rocev2.CNPPayload)
	var f rocev2.Frame
	frame := b.w.umem.Data(d.Addr, d.Len)
	if r := rocev2.Decode(frame, &f); r != rocev2.OK {
		t.Fatal(r)
	}
	f.UDP().SetSrcPort(0)
	binary.LittleEndian.PutUint32(frame[len(frame)-rocev2.ICRCLen:], f.ComputeICRC())
	b.w.servePacket(1, d)
	p := b.w.ports[0]
	if len(p.staged) != 1 {
		t.Fatalf("%d frames to the source; drops %v", len(p.staged), b.w.count.drops())
	}
	if r := rocev2.Decode(b.w.umem.Data(p.staged[0].Addr, p.staged[0].Len), &f); r != rocev2.OK || f.Op != rocev2.CNP ||
		!f.VerifyICRC() || f.Src() != b.group || f.Dst() != b.hosts[0].IPv4 || f.BTH().DestQP() != 0x100 || !f.BTH().BECN() {
		t.Errorf("%v: not the source's CNP: %x", r, b.w.umem.Data(p.staged[0].Addr, p.staged[0].Len))
	}
	b.unstage()
}

// A leg keeps what turns one source's headers into its own; another source's
// packets, interleaved with them, get their own difference (epochs change the
// source without anything being put anew).
func TestC58_EverySourceHasItsOwnDifference(t *testing.T) {
	w := bareWorker(t, 2)
	group := netip.MustParseAddr("10.9.9.9")
	w.groups[0] = groupTable{ip: group, qpn: 0x4711, legs: []leg{{
		kind: mcast.Connected, port: 1, mac: rocev2.MAC{2, 7}, ip: rocev2.KeyOf(netip.MustParseAddr("10.0.0.9")), qpn: 0x99,
	}}}
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.ByteRange(1, 3).Draw(t, "source")
		in := rocev2.Path{Src: netip.AddrFrom4([4]byte{10, 0, 0, host}), Dst: group, SrcPort: 0xC123}
		k := rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711, PSN: 7}
		d := w.receiveFrame(t, func(b []byte) int { return rocev2.BuildPacket(b, &in, &k, []byte("abcdefgh")) })
		w.copy(&mcast.Copy{PSN: 0x1007}, &w.frame, []xsk.Desc{d}, true)
		p := w.ports[1]
		var f rocev2.Frame
		if r := rocev2.Decode(w.umem.Data(p.staged[0].Addr, p.staged[0].Len), &f); r != rocev2.OK || !f.VerifyICRC() || f.Src() != group {
			t.Fatalf("decode %v, ICRC right: %v, from %v", r, f.VerifyICRC(), f.Src())
		}
		w.pool.GiveOne(p.staged[0].Addr)
		p.staged = p.staged[:0]
	})
}
