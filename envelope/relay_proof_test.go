// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// unsealed decodes a sealed relay of the fabric.
func unsealed(b []byte) relay {
	own, _ := cutProof(b[:len(b)-MACLen])
	m, perr := parseRelay(own)
	if perr != nil {
		panic(perr)
	}
	return m
}

// What a switch can have in place of a group's key.
var lackingKeys = map[string]Keys{
	"another tenant's key":                  {8: testKeys[8]},
	"another secret under the id":           {7: bytes.Repeat([]byte{0x11}, 32)},
	"another tenant's key, as the group's":  {7: testKeys[8]},
	"keys of another tenant under both ids": {7: testKeys[8], 8: testKeys[8]},
}

// loseKey has switch i hold keys in place of those of before.
func (f *fabric) loseKey(i int, keys Keys) {
	f.t.Helper()
	auth := Auth{Keys: keys, Send: 8}
	if keys[8] == nil {
		auth.Send = 7
	}
	if _, err := f.switches[i].sw.SetKeys(f.now, auth, nil); err != nil {
		f.t.Fatal(err)
	}
	f.switches[i].sw.retiredAuth = nil
}

// attacks are relays about the group g, by whoever knows everything about it but the key. The
// sender is the neighbour n of the receiver, which takes no more of a Prepare than its
// first segment.
func attacks(g *group, own SwitchID) map[string]relay {
	reg := g.reg
	all := slices.Clone(reg.Members)
	behind := slices.Repeat([]bool{true}, len(all))
	prepare := func(base uint64, ms []MemberRecord) *prepareBody {
		p := &prepareBody{
			master: masterAddr, tx: g.tx + 1, left: time.Second, group: reg.groupBody(ms), behind: behind[:len(ms)],
			origin: reg.Origin, generation: g.generation + 9, known: g.last, numbers: reg.numbers()[:len(ms)],
		}
		p.group.Base, p.group.TotalMembers = base, len(ms)
		return p
	}
	id := g.branch.id
	higher, others := id, id
	higher.epoch, higher.number = id.epoch+1, 99
	others.epoch, others.root, others.number = id.epoch+1, own, 99
	gone := func(why EndReason) *Gone { return &Gone{Member: all[0].Key(), EndReason: why} }
	as := map[string]relay{
		"Prepare of a new group":         {kind: relayPrepare, hops: 1, id: others, prepare: prepare(0, all[:2])},
		"Prepare of all members":         {kind: relayPrepare, hops: 1, id: others, prepare: prepare(0, all)},
		"Prepare of an update":           {kind: relayPrepare, hops: 1, id: higher, prepare: prepare(id.epoch, all[:2])},
		"Prepare of a rebuild":           {kind: relayPrepare, hops: 1, id: attemptID{id.epoch, id.root, 98, id.key}, prepare: prepare(id.epoch, all[:2])},
		"Prepared":                       {kind: relayPrepared, id: id},
		"Refused":                        {kind: relayRefused, id: id, problems: []Problem{{Reason: TableFull}}},
		"Refused with the highest epoch": {kind: relayRefused, id: id, problems: []Problem{{Reason: StaleEpoch, Value: 1<<64 - 1}}},
		"Refused for want of the key":    {kind: relayRefused, unproved: true, id: id, problems: []Problem{{Reason: KeyMissing, Value: uint64(own)}}},
		"Commit":                         {kind: relayCommit, id: id, above: 1},
		"Committed":                      {kind: relayCommitted, id: id, lacking: true},
		"Ended":                          {kind: relayEnded, id: id},
		"a short lease":                  {kind: relayRenew, id: id, serial: g.branch.serial + 9, tx: g.tx + 9, lease: time.Millisecond, whom: notifyAll},
		"a question":                     {kind: relayRenew, id: id, serial: g.branch.serial + 9, whom: notifyAll},
		"Renewed":                        {kind: relayRenewed, id: id, serial: g.branch.serial},
		"Noted":                          {kind: relayNoted, id: id, serial: 1},
		"Rebuild":                        {kind: relayRebuild, id: id, lost: LostLink{At: own, To: 0x101, Port: "eth1"}},
		"Rebuilds":                       {kind: relayRebuilds, id: id},
	}
	for why := range NumEndReasons {
		as[fmt.Sprintf("End %v", why)] = relay{kind: relayEnd, id: id, why: why}
		as[fmt.Sprintf("End %v of a later attempt", why)] = relay{kind: relayEnd, id: higher, why: why}
		if why != NotEnded {
			as[fmt.Sprintf("Gone %v", why)] = relay{kind: relayGone, id: id, serial: 77, gone: gone(why)}
		}
	}
	return as
}

// TestRelayNeedsTheGroupsKey: a neighbour that lacks the key of a group changes nothing in it,
// whatever it says, be it outside the group's tree, below the switch or above it.
func TestRelayNeedsTheGroupsKey(t *testing.T) {
	for place, c := range map[string]struct{ hostile, victim int }{
		"outside the tree": {3, 1}, "below": {2, 1}, "above": {0, 1}, "below the root": {1, 0},
	} {
		for which, keys := range lackingKeys {
			for _, claim := range []KeyID{7, 8, 0} {
				t.Run(fmt.Sprintf("%s, %s, key %d", place, which, claim), func(t *testing.T) {
					f := newFabric(t, 4, [][2]int{{0, 1}, {1, 2}, {1, 3}})
					reg := f.registered(0, 1, 2)
					f.loseKey(c.hostile, keys)
					f.attack(c.hostile, c.victim, claim, reg)
				})
			}
		}
	}
}

// attack has switch hostile attack the group at switch victim, under a claimed key.
func (f *fabric) attack(hostile, victim int, claim KeyID, reg Registration) {
	evil, s := f.switches[hostile].sw, f.switches[victim]
	from := mcast.Neighbor(slices.Index(s.peers, hostile) + 1)
	to := f.reverse(victim, from)
	g := s.sw.groups[reg.Group]
	before, lease, _ := s.sw.Group(reg.Group)
	book := *s.sw.epochs[reg.Group]
	for name, m := range attacks(g, switchID(hostile)) {
		m.group = reg.Group
		m.id.key = claim
		for range 2 { // twice: unlike a repetition, the second one has another sequence number
			var out Output
			s.sw.InputFromSwitch(f.now, from, evil.seal(evil.neighbours[to], encodeRelay(&m)), &out)
			if len(out.Events)+len(out.Packets) > 0 {
				f.t.Errorf("%s: %d events, %d messages to hosts", name, len(out.Events), len(out.Packets))
			}
			for _, x := range out.Relays {
				if r := unsealed(x.Data); x.To != from || !isNo(&r) {
					f.t.Errorf("%s: a %v to neighbour %d", name, r.kind, x.To)
				}
			}
			if out.Drop == NoDrop && len(out.Relays) == 0 {
				f.t.Errorf("%s: it is taken", name)
			}
		}
		after, until, _ := s.sw.Group(reg.Group)
		if s.sw.groups[reg.Group] != g || g.failed || until != lease || after.Lease != before.Lease || !slices.Equal(after.Members, before.Members) || s.table.groups[reg.Group].Epoch != before.Epoch {
			f.t.Errorf("%s: the group has changed", name)
		}
		if *s.sw.epochs[reg.Group] != book || len(s.sw.preparing)+len(s.sw.locating) > 0 || g.branch.repair.until != 0 || g.branch.repair.wanted.index > 0 {
			f.t.Errorf("%s: something is under way", name)
		}
	}
}

// isNo reports whether m answers that an attempt is refused, or not here: under a key that the
// neighbour has.
func isNo(m *relay) bool {
	switch m.kind {
	case relayRefused:
		return true
	case relayEnd, relayEnded, relayNoted:
		return m.id.key == 8
	}
	return false
}

// TestRelayNeedsTheGroupsKeyFirst: a neighbour that lacks a key registers no group under it.
func TestRelayNeedsTheGroupsKeyFirst(t *testing.T) {
	for which, keys := range lackingKeys {
		f := newFabric(t, 2, [][2]int{{0, 1}})
		reg := f.registered(0, 1)
		stolen := f.switches[0].sw.groups[reg.Group]
		f = newFabric(t, 2, [][2]int{{0, 1}})
		f.members(reg, spread(len(reg.Members), 0, 1))
		f.loseKey(0, keys)
		evil, victim := f.switches[0].sw, f.switches[1].sw
		for name, m := range attacks(stolen, switchID(0)) {
			m.group = reg.Group
			var out Output
			victim.InputFromSwitch(f.now, 1, evil.seal(evil.neighbours[1], encodeRelay(&m)), &out)
			if len(out.Events) > 0 || len(victim.preparing)+len(victim.locating)+len(victim.groups)+len(victim.epochs) > 0 || out.Drop == NoDrop {
				t.Errorf("%s, %s: drop %v", which, name, out.Drop)
			}
		}
	}
}

// TestRelayProofCountsOnce: a proof is not valid at another switch, in another session, of other
// bytes, or as an envelope; nor is an envelope a proof.
func TestRelayProofCountsOnce(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := f.registered(0, 1, 2)
	f.loseKey(1, Keys{8: testKeys[8]}) // it has relays of before, and the key of switches
	middle := f.switches[1].sw
	for _, x := range f.captured {
		if x.to != 1 && x.from != 1 {
			continue
		}
		own, proof := cutProof(x.b[:len(x.b)-MACLen])
		for _, to := range []int{0, 2} {
			n := middle.neighbours[f.reverse(to, 1)]
			d := middle.seal(n, own) // with sender, session and number of today
			d = d[:len(d)-MACLen]    // the proof of then in place of none
			d[relayFlagsOffset] |= relayProof
			d = append(d, proof...)
			d[relayLengthOffset], d[relayLengthOffset+1] = byte((len(d)+MACLen)>>8), byte(len(d)+MACLen)
			d = append(d, relayMAC(switchKeys[3], d)...)
			var out Output
			if f.switches[to].sw.InputFromSwitch(f.now, 1, d, &out); out.Drop != BadMAC || len(out.Events)+len(out.Packets) > 0 {
				t.Errorf("a %v from %d to %d, sent to %d: %v", unsealed(x.b).kind, x.from, x.to, to, out.Drop)
			}
		}
	}
	f.run(time.Millisecond)
	if on := f.installed(reg.Group); len(on) != 3 {
		t.Errorf("the group is at %v", on)
	}
	for _, l := range labels {
		if l != "" && (bytes.HasPrefix([]byte(l), []byte(proofLabel)) || bytes.HasPrefix([]byte(proofLabel), []byte(l))) {
			t.Errorf("%q and %q", l, proofLabel)
		}
	}
}

// TestTreeKeyDiffers: a switch with another secret under the group's key ID refuses the group,
// and the master hears which one.
func TestTreeKeyDiffers(t *testing.T) {
	for _, i := range []int{1, 2} {
		for which, keys := range lackingKeys {
			f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
			reg := sample(1, 6)
			f.members(reg, spread(6, 0, 1, 2))
			f.loseKey(i, keys)
			f.master(masterAddr, 0, reg)
			f.run(12 * time.Second)
			e := f.last(masterAddr)
			failure, ok := e.Err.(*Failure)
			if e.Kind != RegistrationFailed || !ok || failure.Problem.Reason != KeyMissing || failure.Problem.Value != uint64(switchID(i)) {
				t.Errorf("switch %d, %s: %s", i, which, eventString(e))
			}
			f.run(time.Minute)
			f.checkNothingLeft()
		}
	}
}

// TestTreeKeyGoes: a switch that loses the key of a running group tells its neighbours of the
// group's end all the same, and takes nothing more about it.
func TestTreeKeyGoes(t *testing.T) {
	f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
	reg := f.registered(0, 1, 2)
	if _, err := f.switches[0].sw.SetKeys(f.now, Auth{Keys: Keys{8: testKeys[8]}, Send: 8}, nil); err != nil {
		t.Fatal(err)
	}
	var out Output
	if err := f.switches[0].sw.DeleteLocal(f.now, reg.Group, &out); err != nil {
		t.Fatal(err)
	}
	f.switchDid(0, &out)
	f.run(time.Second)
	if on := f.installed(reg.Group); len(on) > 0 {
		t.Errorf("after the root's End the group is at %v", on)
	}
}

// TestRelayRefusesWithTheKeyAlone: a switch that is asked to serve a group, and lacks its key, can
// say that alone. Another reason of it, such as the highest epoch, is not believed.
func TestRelayRefusesWithTheKeyAlone(t *testing.T) {
	f := newFabric(t, 2, [][2]int{{0, 1}})
	reg := sample(1, 4)
	f.members(reg, spread(4, 0, 1))
	f.loseKey(1, Keys{8: testKeys[8]})
	f.silent[1] = true
	f.master(masterAddr, 0, reg)
	f.run(500 * time.Millisecond)
	root, evil := f.switches[0].sw, f.switches[1].sw
	g := root.locating[reg.Group]
	missing := Problem{Reason: KeyMissing, Value: uint64(switchID(1))}
	for _, problems := range [][]Problem{{{Reason: StaleEpoch, Value: 1<<64 - 1}}, {{Reason: TableFull}}, {missing, {Reason: StaleEpoch, Value: 1<<64 - 1}}, {missing}} {
		m := relay{kind: relayRefused, unproved: true, id: g.branch.id, group: reg.Group, problems: problems}
		var out Output
		root.InputFromSwitch(f.now, 1, evil.seal(evil.neighbours[1], encodeRelay(&m)), &out)
		alone := len(problems) == 1 && problems[0] == missing
		if failed := root.locating[reg.Group] == nil; failed != alone || (out.Drop == Unauthenticated) == alone {
			t.Errorf("%v: drop %v, the attempt has failed: %t", problems, out.Drop, failed)
		}
		f.switchDid(0, &out)
	}
	if e := root.epochs[reg.Group]; e == nil || e.newest() != g.reg.Epoch {
		t.Errorf("the root knows epoch %+v, the group's is %d", e, g.reg.Epoch)
	}
}

// TestTreeKeyRights: each switch of a tree holds a group to the rights that its key has there.
func TestTreeKeyRights(t *testing.T) {
	for name, c := range map[string]struct {
		rights Rights
		want   Reason // 0: registered, and only the master's host may send at that switch
	}{
		"members":      {Rights{Roles: RoleMember}, KeyRole},
		"receive only": {Rights{Roles: RoleReceiveOnly}, KeyRole},
		"prefix":       {Rights{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.77.0/24")}}, KeyPrefix},
		"groups":       {Rights{Quota: Quota{Members: 5}}, QuotaExceeded},
		"one sender":   {Rights{Roles: RoleMaster | RoleReceiveOnly}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 3, [][2]int{{0, 1}, {1, 2}})
			f.restarted = true
			reg := sample(1, 6)
			f.members(reg, spread(6, 0, 1, 2))
			a := netip.AddrPortFrom(reg.Members[0].IP, 5000)
			if _, err := f.switches[2].sw.SetKeys(f.now, testAuth(), map[KeyID]Rights{7: c.rights}); err != nil {
				t.Fatal(err)
			}
			f.master(a, 0, reg)
			f.run(5 * time.Second)
			e := f.last(a)
			if c.want == 0 {
				if e.Kind != Registered {
					t.Fatal(eventString(e))
				}
				for _, m := range f.switches[2].table.groups[reg.Group].Members {
					if m.ReceiveOnly != (m.IP != a.Addr()) {
						t.Errorf("member %s", m)
					}
				}
				return
			}
			if failure, ok := e.Err.(*Failure); e.Kind != RegistrationFailed || !ok || failure.Problem.Reason != c.want {
				t.Error(eventString(e))
			}
			f.run(time.Minute)
			f.checkNothingLeft()
		})
	}
}
