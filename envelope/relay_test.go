// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// relayExamples has a relay of each kind.
func relayExamples() []relay {
	id := attemptID{epoch: 7, root: 0x101, number: 99, key: 7}
	insecure := id
	insecure.key = 0
	g4, g6 := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00:9::1")
	reg := withWindows(sample(1, 9))
	reg.Members[3].ReceiveOnly = true
	p := &prepareBody{
		master: masterAddr, tx: 5, left: time.Second, group: reg.groupBody(reg.Members),
		behind: []bool{true, false, false, true, false, false, false, false, true}, origin: 4, generation: 2, known: 3, numbers: []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9},
	}
	later := *p
	later.numbers = []uint32{1, 2, 3, 4, 5, 6, 7, 9, 12}
	return []relay{
		{kind: relayPrepare, hops: 1, id: id, seq: 1, total: 3, group: g4, prepare: p},
		{kind: relayPrepare, hops: 1, id: id, seq: 1, total: 3, group: g4, prepare: &later},
		{kind: relayPrepared, id: id, total: 1, group: g6, height: 2, diameter: 4},
		{kind: relayRefused, id: id, total: 1, group: g4, problems: []Problem{{Reason: NoWay, Member: reg.Members[1].Key(), Value: 9}, {Reason: TableFull}}},
		{kind: relayRefused, unproved: true, id: id, total: 1, group: g4, problems: []Problem{{Reason: KeyMissing, Value: 0x102}}},
		{kind: relayCommit, id: id, total: 1, group: g4, above: 3},
		{kind: relayCommitted, id: insecure, total: 1, group: g4},
		{kind: relayEnd, id: id, total: 1, group: g6, why: Expired},
		{kind: relayEnd, id: id, total: 1, group: g6, why: SwitchLost, lost: LostLink{At: 0x101, To: 0x102, Port: "eth1"}},
		{kind: relayEnded, id: id, total: 1, group: g4},
		{kind: relayRenew, id: id, total: 1, group: g4, serial: 4, tx: 8, lease: time.Minute, list: []MemberRecord{{IP: reg.Members[0].IP, QPN: 0x100}}},
		{kind: relayRenew, id: id, total: 1, group: g4, serial: 4, tx: 8, lease: time.Minute, whom: notifyAll},
		{kind: relayRenewed, id: id, total: 1, group: g4, serial: 4},
		{kind: relayGone, id: id, total: 1, group: g4, serial: 4, gone: &Gone{Member: reg.Members[0].Key(), EndReason: Evicted, PSN: 5}},
		{kind: relayNoted, id: id, total: 1, group: g4, serial: 4},
		{kind: relayRebuild, id: id, total: 1, group: g4, lost: LostLink{At: 0x101, To: 0x102, Port: "eth1"}},
		{kind: relayRebuilds, id: id, total: 1, group: g4},
	}
}

// TestRelayWire: what is encoded is decoded, no prefix of it is a relay, and nothing may
// follow.
func TestRelayWire(t *testing.T) {
	seen := map[relayKind]bool{}
	for _, m := range relayExamples() {
		seen[m.kind] = true
		b := encodeRelay(&m)
		got, perr := parseRelay(b)
		if perr != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%v: %+v, %v", m.kind, got, perr)
		}
		two := m
		if two.total = 2; m.kind != relayPrepare {
			if _, perr := parseRelay(encodeRelay(&two)); perr == nil {
				t.Errorf("%v: there may be two segments", m.kind)
			}
		}
		for n := range b {
			if _, perr := parseRelay(b[:n]); perr == nil {
				t.Errorf("%v: the first %d of %d bytes are a relay", m.kind, n, len(b))
			}
		}
		if _, perr := parseRelay(append(bytes.Clone(b), 0)); perr == nil {
			t.Errorf("%v: a byte may follow", m.kind)
		}
	}
	if len(seen) != int(numRelayKinds)-1 {
		t.Errorf("examples of %d kinds", len(seen))
	}
}

// FuzzRelay: nothing that neighbours send makes the parser or the registrar panic, and what
// is parsed is encoded to what is parsed again.
func FuzzRelay(f *testing.F) {
	for _, m := range relayExamples() {
		f.Add(encodeRelay(&m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, perr := parseRelay(b)
		if perr != nil {
			return
		}
		again, perr := parseRelay(encodeRelay(&m))
		if perr != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v, %+v, %v", m, again, perr)
		}
		w := newFabric(t, 2, [][2]int{{0, 1}})
		reg := sample(1, 4)
		w.members(reg, []int{0, 1, 0, 1})
		w.master(masterAddr, 0, reg)
		w.run(time.Second)
		m.id.root, m.group = switchID(0), reg.Group
		for _, to := range []int{0, 1} {
			for _, g := range []*group{nil, w.switches[to].sw.groups[reg.Group]} {
				if g != nil && g.branch != nil {
					m.id = g.branch.id
				}
				from := w.switches[1-to].sw
				var out Output
				w.switches[to].sw.InputFromSwitch(w.now, 1, from.seal(from.neighbours[1], encodeRelay(&m)), &out)
				w.switchDid(to, &out)
			}
		}
		w.run(time.Minute)
	})
}

// TestRelayAttackers: what a host sends, and what is forged, replayed, reflected, or of
// another session, has no effect, and is counted under its reason.
func TestRelayAttackers(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := sample(1, 6)
	f.members(reg, spread(6, 0, 1, 2))
	f.master(masterAddr, 0, reg)
	f.run(time.Second)
	a, b := f.switches[0].sw, f.switches[1].sw
	end := func(from *Registrar) []byte {
		return from.seal(from.neighbours[1], encodeRelay(&relay{kind: relayEnd, id: a.groups[reg.Group].branch.id, group: reg.Group, why: Deleted}))
	}
	forge := func(change func(b []byte)) []byte {
		d := end(a)
		change(d)
		return d
	}
	remac := func(d []byte, key []byte) { copy(d[len(d)-MACLen:], relayMAC(key, d[:len(d)-MACLen])) }
	var out Output
	for name, c := range map[string]struct {
		b    []byte
		want Drop
	}{
		"another byte":     {forge(func(d []byte) { d[relayFixedLen]++ }), BadMAC},
		"key of hosts":     {forge(func(d []byte) { binary.BigEndian.PutUint16(d[relayKeyOffset:], 7); remac(d, testKeys[7]) }), UnknownKey},
		"no key":           {forge(func(d []byte) { binary.BigEndian.PutUint16(d[relayKeyOffset:], 0) }), UnknownKey},
		"another sender":   {forge(func(d []byte) { d[relaySenderOffset]++; remac(d, switchKeys[3]) }), WrongSource},
		"another session":  {forge(func(d []byte) { d[relaySessionOffset]++; remac(d, switchKeys[3]) }), WrongInstance},
		"reflected":        {end(b), WrongSource},
		"cut":              {end(a)[:90], Truncated},
		"length":           {forge(func(d []byte) { d[relayLengthOffset]++; remac(d, switchKeys[3]) }), Truncated},
		"another version":  {forge(func(d []byte) { d[4]++; remac(d, switchKeys[3]) }), BadVersion},
		"another protocol": {forge(func(d []byte) { d[0]++ }), BadMagic},
	} {
		before := b.drops[c.want]
		b.InputFromSwitch(f.now, 1, c.b, &out)
		if out.Drop != c.want || b.drops[c.want] != before+1 || len(out.Events)+len(out.Relays)+len(out.Packets) > 0 {
			t.Errorf("%s: drop %v, want %v; %d events", name, out.Drop, c.want, len(out.Events))
		}
	}
	for _, x := range f.captured { // everything again, to everybody
		for i, s := range f.switches {
			for n := range s.peers {
				s.sw.InputFromSwitch(f.now, mcast.Neighbor(n+1), x.b, &out)
				if len(out.Events)+len(out.Relays)+len(out.Packets) > 0 || out.Drop == NoDrop {
					t.Errorf("a relay from %d to %d, replayed to %d, has an effect", x.from, x.to, i)
				}
			}
		}
	}
	b.Input(f.now, netip.MustParseAddrPort("10.0.0.66:4797"), end(a), &out)
	if out.Drop != NotFromSwitch || len(out.Packets) > 0 {
		t.Errorf("from a host: %v", out.Drop)
	}
	b.InputFromSwitch(f.now, 77, end(a), &out)
	if out.Drop != NotFromSwitch {
		t.Errorf("from nobody: %v", out.Drop)
	}
	recorded := end(a)
	f.boot(1)
	f.boot(0)
	f.switches[1].sw.InputFromSwitch(f.now, 1, recorded, &out)
	if out.Drop != WrongInstance {
		t.Errorf("of before the restart: %v", out.Drop)
	}
}

// TestRelayOrder: a sequence number counts once, in any order within the window.
func TestRelayOrder(t *testing.T) {
	n := &neighbour{}
	for i, c := range []struct {
		seq  uint64
		want bool
	}{{0, false}, {3, true}, {1, true}, {3, false}, {1, false}, {2, true}, {66, true}, {2, false}, {4, true}, {65, true}, {65, false}, {200, true}, {66, false}, {137, true}, {136, false}, {201, true}, {200, false}} {
		if got := n.fresh(c.seq); got != c.want {
			t.Errorf("%d: %d counts: %t", i, c.seq, got)
		}
	}
}

// TestTreeHostsAtOtherSwitches: requests about a group from elsewhere than its root are
// refused, but a member leaves where it is.
func TestTreeHostsAtOtherSwitches(t *testing.T) {
	f := newFabric(t, 2, [][2]int{{0, 1}})
	reg := sample(1, 6)
	f.members(reg, spread(6, 0, 1))
	m := f.master(masterAddr, 0, reg)
	f.run(time.Second)
	f.at[masterAddr.Addr()] = 1 // the master's host is behind the other switch now
	var out Output
	m.Delete(f.now, &out)
	f.hostDid(masterAddr, &out)
	f.run(time.Second)
	if e := f.last(masterAddr); len(f.installed(reg.Group)) != 2 {
		t.Errorf("at %v: %s", f.installed(reg.Group), eventString(e))
	}
	// The operator at the other switch ends it everywhere.
	if err := f.switches[1].sw.DeleteLocal(f.now, reg.Group, &out); err != nil {
		t.Fatal(err)
	}
	f.switchDid(1, &out)
	f.at[masterAddr.Addr()] = 0
	f.run(time.Minute)
	f.checkNothingLeft()
}
