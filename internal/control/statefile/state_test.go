// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

func addr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// testGroup makes group i with members members, every field set.
func testGroup(i, members int) *Group {
	g := &Group{
		Registration: envelope.Registration{
			Group: addr(i), Epoch: 1790000000000 + uint64(i), GroupParams: mcast.GroupParams{
				QPN: mcast.DefaultQPN, PathMTU: 1024, Policy: mcast.Quorum, Quorum: 3, DeadAfter: 100 * time.Millisecond,
				LagPSNs: 1000, LagTime: time.Second, SenderTimeout: 14, SenderRetries: 7,
			},
			Base: 1789999999999, Lease: time.Minute, Window: mcast.Window{Base: 1 << 40, Len: 1 << 20, RKey: 7}, TargetKey: 99, NoRepair: true,
			Master: netip.AddrPortFrom(addr(100000+i), 40000),
		},
		Key: 3, Transaction: 0xFFFF0001, Digests: [][32]byte{{1, 2, 3}, {4}}, RegisteredAt: time.UnixMilli(1790000000123),
	}
	for m := range members {
		g.Registration.Members = append(g.Registration.Members, envelope.MemberRecord{
			IP: addr(100000 + i*members + m), QPN: rocev2.QPN(0x11 + m), SQPSN: rocev2.PSN(0xFFFFF0 + m%16), RQPSN: rocev2.PSN(m),
			Window: mcast.Window{Base: uint64(m) << 30, Len: 1 << 20, RKey: uint32(m) + 1}, ReceiveOnly: m%2 == 1,
		})
		g.Joined = append(g.Joined, g.Registration.Epoch-uint64(m%3))
	}
	return g
}

func testTurn(g *Group) *Turn {
	t := &Turn{Source: g.Registration.Members[0].IP}
	for i := range g.Registration.Members {
		m := &g.Registration.Members[i]
		t.Positions = append(t.Positions, Position{Member: m.IP, Send: m.SQPSN.Add(5), Receive: m.RQPSN.Add(7)})
	}
	return t
}

func testFormer(i int) Former {
	return Former{Record: envelope.MemberRecord{IP: addr(i), QPN: 0x20, SQPSN: 1, RQPSN: 2, Window: mcast.Window{Base: 1, Len: 2, RKey: 3}, ReceiveOnly: true}, Joined: 5, Reason: envelope.Evicted, Code: 0x61, PSN: 0xABCDEF}
}

// whole is a state with everything in it.
func whole() *State {
	g, local := testGroup(1, 4), testGroup(2, 2)
	g.Turn, g.Failed, g.Former = testTurn(g), true, []Former{testFormer(1), testFormer(2)}
	local.Registration.Master, local.Key, local.Digests, local.Transaction = netip.AddrPort{}, 0, nil, 0
	six := testGroup(3, 2)
	six.Registration.Group = netip.MustParseAddr("fd00::1")
	for i := range six.Registration.Members {
		six.Registration.Members[i].IP = netip.MustParseAddr(fmt.Sprintf("fd00:1::%d", i+1))
		six.Registration.Members[i].Window = mcast.Window{}
	}
	g.Turn.Joining = []netip.Addr{g.Registration.Members[2].IP, g.Registration.Members[3].IP}
	g.Turn.Positions[len(g.Turn.Positions)-1].FullHistory = true
	g.Identity = &Identity{Origin: 1789999999998, Last: 9, Members: []uint32{1, 4, 9, 1 << 31}}
	g.Place = &Place{
		Root: 1<<63 + 5, Attempt: 1<<64 - 1, Base: 7, Generation: 3, Hops: 2, Above: 1, Parent: 1, Members: []int{0, -1, 1, 1},
		Neighbours: []Neighbour{{ID: 6, Port: "s1", Levels: 1, Height: 0, Diameter: 0}, {ID: 1 << 62, Port: "eth0", Levels: 3, Height: 1, Diameter: 2}},
	}
	s := &State{
		Switch: Switch{Boots: 7, EpochBase: 1790000000000},
		Groups: map[netip.Addr]*Group{}, Epochs: map[netip.Addr]uint64{addr(9): 1 << 63, six.Registration.Group: 4},
		Hosts: map[netip.Addr]*Host{addr(100004): testHost(), addr(5): {Pinned: Location{Port: "p"}}},
	}
	s.Created = map[netip.Addr][]byte{addr(8): []byte(`{"port":7471}`), six.Registration.Group: []byte("{}")}
	for _, g := range []*Group{g, local, six} {
		s.Groups[g.Registration.Group] = g
	}
	return s
}

// change makes s out of nothing.
func (s *State) change() *Change {
	c := new(Change)
	c.PutSwitch(s.Switch)
	for _, g := range s.Groups {
		c.PutGroup(g)
	}
	for ip, e := range s.Epochs {
		c.SetEpoch(ip, e)
	}
	for ip, h := range s.Hosts {
		c.PutHost(ip, h)
	}
	for ip, b := range s.Created {
		c.SetCreated(ip, b)
	}
	return c
}

func TestStateComesBack(t *testing.T) {
	want := whole()
	d := new(fakeDisk)
	if err := newLog(d).commit(&want.change().edits); err != nil {
		t.Fatal(err)
	}
	found, _, err := load(d, "state")
	if err != nil || found.New || found.Damaged != nil {
		t.Fatal(err, found)
	}
	if !reflect.DeepEqual(found.State, want) {
		t.Errorf("got  %+v\nwant %+v", found.State, want)
	}
}

// No field of a description may be forgotten: each one is set in the state of
// TestStateComesBack.
func TestEveryFieldIsKept(t *testing.T) {
	s := whole()
	var visit func(v reflect.Value, path string)
	visit = func(v reflect.Value, path string) {
		switch {
		case strings.HasSuffix(path, ".Registration.Tree"): // Group.Place is in its place
		case strings.HasSuffix(path, ".Registration.Origin"), strings.HasSuffix(path, ".Registration.Numbers"): // as is Group.Identity
		case strings.HasSuffix(path, ".Reply"), strings.HasSuffix(path, ".Registration.Exclusive"): // of diallers and of requests, which are not kept
		case v.Kind() == reflect.Pointer:
			visit(v.Elem(), path)
		case v.Kind() == reflect.Struct && strings.HasPrefix(v.Type().PkgPath(), "github.com/gleam"):
			for i := range v.NumField() {
				visit(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case v.Kind() == reflect.Slice && v.Len() > 0:
			visit(v.Index(v.Len()-1), path+"[]")
		case v.IsZero():
			t.Errorf("%s is zero in the test, so that it is not tested", path)
		}
	}
	visit(reflect.ValueOf(s.Groups[addr(1)]), "Group")
	visit(reflect.ValueOf(s.Switch), "Switch")
	visit(reflect.ValueOf(s.Hosts[addr(100004)]), "Host")
	visit(reflect.ValueOf(s.Hosts[addr(100004)].Locations[65535]), "Location")
}

func TestMembersThatHaveGone(t *testing.T) {
	l := newLog(new(fakeDisk))
	g := testGroup(1, 4)
	g.Turn = testTurn(g)
	g.Identity = &Identity{Origin: 1, Last: 4, Members: []uint32{1, 2, 3, 4}}
	g.Place = &Place{Root: 1, Parent: -1, Neighbours: []Neighbour{{ID: 2}}, Members: []int{-1, -1, 0, -1}}
	var c Change
	c.PutGroup(g)
	c.AddFormer(addr(1), &Former{Record: g.Registration.Members[1], Joined: g.Joined[1], Reason: envelope.Left})
	c.AddFormer(addr(1), &Former{Record: g.Registration.Members[0], Joined: g.Joined[0], Reason: envelope.Evicted})
	used := g.Registration.Members[2] // a record of another epoch with the numbers of a present member's
	c.AddFormer(addr(1), &Former{Record: used})
	l.table.apply(&c.edits)
	s, err := l.table.state()
	if err != nil {
		t.Fatal(err)
	}
	got := s.Groups[addr(1)]
	if !slices.Equal(got.Registration.Members, g.Registration.Members[2:]) || !slices.Equal(got.Joined, g.Joined[2:]) || len(got.Former) != 3 {
		t.Errorf("members %v, joined %v, former %v", got.Registration.Members, got.Joined, got.Former)
	}
	if !slices.Equal(got.Identity.Members, []uint32{3, 4}) || !slices.Equal(got.Place.Members, []int{0, -1}) {
		t.Errorf("numbers %v, places %v of those that stay", got.Identity.Members, got.Place.Members)
	}
	if got.Turn.Source.IsValid() || !slices.Equal(got.Turn.Positions, g.Turn.Positions[2:]) {
		t.Errorf("turn %+v; the source has gone", got.Turn)
	}
	c = Change{}
	c.PutGroup(testGroup(1, 2))
	l.table.apply(&c.edits)
	if s, err = l.table.state(); err != nil || s.Groups[addr(1)].Turn != nil || s.Groups[addr(1)].Former != nil || s.Groups[addr(1)].Failed {
		t.Errorf("a new registration has parts of the old one: %+v, %v", s.Groups[addr(1)], err)
	}
}

// Random changes, merged into batches of any size, with the file read again at random, give
// the same state as a map.
func TestPropertyStateOfRandomChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := new(fakeDisk)
		l := newLog(d)
		want := &State{Groups: map[netip.Addr]*Group{}, Epochs: map[netip.Addr]uint64{}, Hosts: map[netip.Addr]*Host{}, Created: map[netip.Addr][]byte{}}
		pending := new(batch)
		ip := rapid.Map(rapid.IntRange(1, 4), addr)
		reopened := func(t *rapid.T) table {
			found, table, err := load(d, "state")
			if err != nil || found.Damaged != nil || found.Torn != 0 {
				t.Fatal(err, found)
			}
			if !reflect.DeepEqual(found.State, want) {
				t.Fatalf("got  %+v\nwant %+v", found.State, want)
			}
			return table
		}
		t.Repeat(map[string]func(*rapid.T){
			"group": func(t *rapid.T) {
				g := testGroup(rapid.IntRange(1, 4).Draw(t, "group"), rapid.IntRange(2, 5).Draw(t, "members"))
				g.Registration.Epoch, g.Failed = rapid.Uint64().Draw(t, "epoch"), rapid.Bool().Draw(t, "failed")
				if rapid.Bool().Draw(t, "turn") {
					g.Turn = testTurn(g)
				}
				var c Change
				c.PutGroup(g)
				pending.merge(&c.edits)
				want.Groups[g.Registration.Group] = g
			},
			"drop": func(t *rapid.T) {
				ip := ip.Draw(t, "group")
				var c Change
				c.DropGroup(ip)
				pending.merge(&c.edits)
				delete(want.Groups, ip)
			},
			"part": func(t *rapid.T) {
				g := want.Groups[ip.Draw(t, "group")]
				if g == nil {
					return
				}
				g2 := *g
				var c Change
				switch rapid.IntRange(0, 2).Draw(t, "part") {
				case 0:
					c.SetFailed(g.Registration.Group)
					g2.Failed = true
				case 1:
					g2.Turn = testTurn(g)
					g2.Turn.Positions[0].Send = rocev2.PSN(rapid.Uint32Range(0, rocev2.PSNMask).Draw(t, "psn"))
					c.SetTurn(g.Registration.Group, g2.Turn)
				case 2:
					f := testFormer(rapid.IntRange(1, 3).Draw(t, "former"))
					f.PSN = rocev2.PSN(rapid.Uint32Range(0, rocev2.PSNMask).Draw(t, "psn"))
					c.AddFormer(g.Registration.Group, &f)
					g2.Former = slices.DeleteFunc(slices.Clone(g.Former), func(o Former) bool { return o.Record == f.Record })
					g2.Former = append(g2.Former, f)
					slices.SortFunc(g2.Former, func(a, b Former) int { return a.Record.IP.Compare(b.Record.IP) })
				}
				pending.merge(&c.edits)
				want.Groups[g.Registration.Group] = &g2
			},
			"epoch": func(t *rapid.T) {
				ip, e := ip.Draw(t, "group"), rapid.Uint64Range(0, 2).Draw(t, "epoch")
				var c Change
				c.SetEpoch(ip, e)
				pending.merge(&c.edits)
				if want.Epochs[ip] = e; e == 0 {
					delete(want.Epochs, ip)
				}
			},
			"host": func(t *rapid.T) {
				ip, h := ip.Draw(t, "host"), &Host{Pinned: Location{Port: rapid.SampledFrom([]string{"", "eth0"}).Draw(t, "port")}}
				for _, key := range rapid.SliceOfN(rapid.Uint16Range(0, 300), 0, 3).Draw(t, "keys") {
					if h.Locations == nil {
						h.Locations = map[envelope.KeyID]Location{}
					}
					h.Locations[envelope.KeyID(key)] = Location{Port: "eth1", VLAN: key, Hop: ip}
				}
				var c Change
				c.PutHost(ip, h)
				pending.merge(&c.edits)
				if want.Hosts[ip] = h; h.Pinned == (Location{}) && h.Locations == nil {
					delete(want.Hosts, ip)
				}
			},
			"created": func(t *rapid.T) {
				ip, b := ip.Draw(t, "group"), []byte(rapid.SampledFrom([]string{"", "{}", `{"port":1}`}).Draw(t, "created"))
				var c Change
				if want.Created[ip] = b; len(b) == 0 {
					delete(want.Created, ip)
					b = nil
				}
				c.SetCreated(ip, b)
				pending.merge(&c.edits)
			},
			"switch": func(t *rapid.T) {
				want.Switch.Boots++
				var c Change
				c.PutSwitch(want.Switch)
				pending.merge(&c.edits)
			},
			"commit": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "anew") == 0 {
					l.limit = 0
				}
				if err := l.commit(pending); err != nil {
					t.Fatal(err)
				}
				if l.size != l.table.encodedLen() {
					t.Fatalf("the size is %d, and counted as %d", l.table.encodedLen(), l.size)
				}
				pending = new(batch)
			},
			"restart": func(t *rapid.T) {
				if err := l.commit(pending); err != nil {
					t.Fatal(err)
				}
				pending = new(batch)
				l = newLog(d)
				l.table = reopened(t)
				l.size = l.table.encodedLen()
			},
		})
		if err := l.commit(pending); err != nil {
			t.Fatal(err)
		}
		reopened(t)
	})
}

// An entry that cannot be decoded is an error, and never a state with other contents.
func TestUnreadableEntries(t *testing.T) {
	g := testGroup(1, 2)
	g.Turn, g.Former = testTurn(g), []Former{testFormer(1)}
	g.Identity = &Identity{Origin: 1, Last: 2, Members: []uint32{1, 2}}
	g.Place = &Place{Root: 1, Parent: 0, Neighbours: []Neighbour{{ID: 1, Port: "p"}}, Members: []int{0, -1}}
	var c Change
	c.PutGroup(g)
	c.PutSwitch(Switch{Boots: 1})
	c.SetEpoch(addr(1), 1)
	c.PutHost(addr(1), testHost())
	good := make(table)
	good.apply(&c.edits)
	name := nodeName(kindGroup, addr(1))
	former := slices.Sorted(maps.Keys(good.node(name)))[1]
	try := func(name, part string, v []byte) {
		t.Helper()
		bad := clone(good)
		bad.set(name, part, v)
		if s, err := bad.state(); err == nil {
			t.Errorf("%q %q = %x: no error, but %+v", name, part, v, s)
		}
	}
	for part, v := range good.node(name) {
		for i := range v {
			try(name, part, v[:i]) // too short
		}
		try(name, part, append(slices.Clone(v), 0)) // too long
	}
	for _, name := range []string{"", "g", "x\x01\x02\x03\x04", "g\x01\x02\x03", "s1"} {
		try(name, "", []byte{})
	}
	try(nodeName(kindGroup, addr(1)), "unknown", []byte{})
	try(nodeName(kindGroup, addr(2)), partFailed, []byte{}) // of no group
	try(nodeName(kindEpoch, addr(1)), "", []byte{})
	try(nodeName(kindEpoch, addr(1)), "", []byte{1, 0})
	try(nodeName(kindEpoch, addr(1)), partTurn, []byte{1})
	try(string(kindSwitch), "", []byte{1})
	try(string(kindSwitch), "part", []byte{})
	f := slices.Clone(good.node(name)[former])
	f[0] |= 4
	try(name, former, f)
	try(name, partTurn, []byte{5, 1, 2, 3, 4, 5, 0}) // an address of 5 bytes
	try(name, former+"x", good.node(name)[former])   // under another name
	try(name, partIdentity, appendIdentity(nil, &Identity{Origin: 1, Last: 2, Members: []uint32{1}}))
	for _, p := range []Place{
		{Members: []int{-1}, Parent: -1},
		{Members: []int{-1, 0}, Parent: -1},
		{Members: []int{-1, -1}, Parent: 0},
	} {
		try(name, partPlace, appendPlace(nil, &p))
	}
}

// A count that is larger than what follows ends at the end.
func TestHugeCounts(t *testing.T) {
	huge := appendUvarint(nil, 1<<62)
	if _, err := parseEdits(append([]byte{0, 1, 'g'}, huge...)); err == nil {
		t.Error("parts without end")
	}
	g := testGroup(1, 2)
	g.Digests, g.Registration.Members = nil, nil
	var c Change
	c.PutGroup(g)
	name := nodeName(kindGroup, addr(1))
	l := make(table)
	l.apply(&c.edits)
	self := l.node(name)[partSelf]
	for i := range self { // one of these is the number of digests, the last that of members
		l.set(name, partSelf, slices.Concat(self[:i], huge))
		if _, err := l.state(); err == nil {
			t.Errorf("byte %d: no error", i)
		}
	}
	l.set(name, partSelf, self)
	l.set(name, partTurn, append([]byte{0}, huge...))
	if _, err := l.state(); err == nil {
		t.Error("positions without end")
	}
}

// A batch is as long as what it changes, however often that changes.
func TestBatchHasOneEditOfANode(t *testing.T) {
	var b batch
	for i := range 100 {
		c := epochChange(i%2, uint64(i)+1)
		c.AddFormer(addr(3), &Former{Record: envelope.MemberRecord{IP: addr(4)}})
		b.merge(&c.edits)
	}
	if len(b.edits) != 3 || len(b.byName) != 3 {
		t.Errorf("%d edits of 3 nodes", len(b.edits))
	}
}

// Removed entries are gone, and the counted size is about that of the encoding.
func TestRemovals(t *testing.T) {
	l := make(table)
	size := l.apply(&whole().change().edits)
	parts, encoded := 0, 0
	for name := range l {
		n := l.node(name)
		parts, encoded = parts+len(n), encoded+len(appendEdit(nil, &edit{name: name, parts: n}))
	}
	if size < encoded || size > encoded+parts {
		t.Errorf("size %d, encoded %d in %d parts", size, encoded, parts)
	}
	var c Change
	for ip := range whole().Groups {
		c.DropGroup(ip)
	}
	for ip := range whole().Epochs {
		c.SetEpoch(ip, 0)
	}
	for ip := range whole().Hosts {
		c.PutHost(ip, &Host{})
	}
	for ip := range whole().Created {
		c.SetCreated(ip, nil)
	}
	c.edits.set(string(kindSwitch), partSelf, nil)
	if growth := l.apply(&c.edits); len(l) != 0 || growth != -size {
		t.Errorf("%v left, %d of %d bytes gone", l, -growth, size)
	}
}
