// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/internal/control/tree"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// meet makes neighbours 1 and 2, at the ports of hosts 2 and 3, up in this session.
func (f *fakeSwitch) meet(mtu uint32, session uint64) {
	f.t.Helper()
	s := &tree.Switches{}
	var links []neighbours.Link
	var up []dataplane.Neighbour
	for i := range 2 {
		n := hello.Neighbour{Speaker: hello.Speaker{ID: hello.SwitchID(100 + i)}, Session: session}
		n.MAC, n.MTU = rocev2.MAC{2, 0, 0, 0, 7, byte(i)}, mtu
		links = append(links, neighbours.Link{Port: 2 + i, State: hello.Up, Neighbour: n})
		up = append(up, dataplane.Neighbour{ID: mcast.Neighbor(i + 1), Port: 2 + i, MAC: n.MAC, Session: session})
	}
	f.control.do(func() {
		s.Table.Update(f.control.now(), links)
		f.control.dir.switches = s
		if err := f.plane.SetNeighbours(up); err != nil {
			f.t.Error(err)
		}
	})
}

// treeRegistration is a group of hosts 0 and 1, which are here, and of four members behind
// the neighbours.
func (f *fakeSwitch) treeRegistration() *envelope.Registration {
	reg := &envelope.Registration{Group: fakeGroup(0), GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}, Tree: &envelope.Tree{
		Parent:     2,
		Neighbours: []envelope.TreeNeighbour{{Neighbour: 1, Levels: 1}, {Neighbour: 2, Levels: 2}},
		Legs:       []mcast.Neighbor{2, 0, 1, 2, 0, 2},
	}}
	for i, k := range []int{10, 0, 11, 12, 1, 13} {
		m := f.record(k, api.QPN(0x100+i))
		reg.Members = append(reg.Members, record(&m))
	}
	return reg
}

// A group with members behind other switches has a leg for each neighbour and for each
// member here, and no more; only the members that are here are located, pinned, announced
// and followed.
func TestGroupWithMembersElsewhere(t *testing.T) {
	f := newFakeSwitch(t, 4, 2)
	f.meet(1500, 5)
	r := f.treeRegistration()
	f.control.do(func() {
		d := f.control.dir
		f.know(2)
		if v := d.Check(r, 0); v != accepted || d.groups[r.Group] != nil || len(d.byID) == 0 || d.byID[0] != nil {
			t.Fatalf("checked: %+v", v)
		}
		if v := d.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
		g := d.groups[r.Group]
		if len(d.over) != 2 || len(d.over[1]) != 1 || len(d.over[2]) != 1 {
			t.Errorf("groups over neighbours: %v", d.over)
		}
		table := d.makeTable(r, g.slots, g.legs)
		if want := []dataplane.Leg{{Neighbour: 2, Port: 3}, {}, {Neighbour: 1, Port: 2}, {}}; !reflect.DeepEqual(table.Legs, want) {
			t.Errorf("legs %+v, want %+v", table.Legs, want)
		}
		var legs, ports []int
		for _, x := range table.Destinations {
			legs, ports = append(legs, int(x.Leg)), append(ports, x.Port)
		}
		if want := "[0 1 2 0 3 0] [-1 0 -1 -1 1 -1]"; fmt.Sprint(legs, ports) != want {
			t.Errorf("legs and ports of the members: %v %v, want %s", legs, ports, want)
		}
		spec := d.makeSpec(0, r, &table)
		want := []mcast.LegSpec{{Kind: mcast.Forwarded, Port: 3, Neighbor: 2, Levels: 2}, {Port: 0}, {Kind: mcast.Forwarded, Port: 2, Neighbor: 1, Levels: 1}, {Port: 1}}
		if !reflect.DeepEqual(spec.Legs, want) {
			t.Errorf("the core's legs %+v, want %+v", spec.Legs, want)
		}
		if n := len(slices.Collect(g.hosts())); n != 2 || d.hosts.Len() != 2 {
			t.Errorf("%d hosts of the group, %d of the switch; want those here", n, d.hosts.Len())
		}
		d.hosts.SetPinner(pinnerFunc(func(ip netip.Addr) {
			if ip != fakeHost(0) && ip != fakeHost(1) {
				t.Errorf("%v is pinned", ip)
			}
		}))
		d.setMembers(g, g.slots, g.slots)
		f.control.announceGroup(g, everyPort)
		for x := range f.control.departures.announcer.queued {
			if x.port > 1 {
				t.Errorf("the group is announced at the port of a neighbour: %+v", x)
			}
		}
	})
	if asked := f.locator.questions(14); asked[10]+asked[11]+asked[12]+asked[13] != 0 {
		t.Errorf("members elsewhere were looked up: %v", asked)
	}
	g, err := f.Group(r.Group)
	if err != nil || len(g.Members) != 6 || g.Members[0].Port != "f3" || g.Members[2].Port != "f2" || g.Members[1].Port != "f0" {
		t.Errorf("%v: %+v", err, g)
	}
	// Member 3 leaves, and then the others behind its neighbour: the group goes on without
	// the leg, and ends as any other.
	f.control.do(func() {
		d := f.control.dir
		for _, i := range []int{3, 0, 5} {
			d.RemoveMember(r.Group, r.Members[i].Key(), envelope.Left)
		}
		table := d.makeTable(r, d.groups[r.Group].slots, d.groups[r.Group].legs)
		if table.Destinations[3].Gone != true || table.Destinations[2].Gone {
			t.Errorf("%+v", table.Destinations)
		}
		d.Remove(r.Group, envelope.Left)
		if len(d.groups) != 0 {
			t.Error("the group is still there")
		}
		if len(d.over) != 0 {
			t.Errorf("groups over neighbours after the end: %v", d.over)
		}
	})
}

// Data of a member behind a neighbour comes to the core from that neighbour alone. The core
// has no token before the neighbours have said anything.
func TestSourceElsewhere(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.meet(1500, 5)
	r := f.treeRegistration()
	f.control.do(func() {
		f.know(2)
		if v := f.control.dir.Install(r, 0); v != accepted {
			t.Fatalf("installed: %+v", v)
		}
	})
	path := rocev2.Path{Src: fakeHost(12), Dst: r.Group, SrcMAC: rocev2.MAC{2, 0, 0, 0, 7, 1}, SrcPort: 0xC123}
	b := make([]byte, 128)
	b = b[:rocev2.BuildPacket(b, &path, &rocev2.Packet{Op: rocev2.SendOnly, AckReq: true, DestQP: 0x4711, PSN: 12000}, nil)]
	if err := f.plane.Deliver(dataplane.Frame{Port: 2, Bytes: b}, dataplane.Frame{Port: 3, Bytes: b}); err != nil {
		t.Fatal(err)
	}
	if s, err := f.plane.Stats(); err != nil || s.Drops["source_guard"] != 1 || s.Normal["no_token"] != 1 {
		t.Errorf("%v: %v, normal %v", err, s.Drops, s.Normal)
	}
}

// A registration is refused while a neighbour of its tree is not known, where its packets
// do not fit a link, and when a member's location changes between Check and Install.
func TestTreeIsChecked(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	r := f.treeRegistration()
	f.control.do(func() {
		f.know(2)
		d := f.control.dir
		if v := d.Check(r, 0); v.Kind != envelope.VerdictRejected || v.Problem.Reason != envelope.NoWay || v.Problem.Member.IP != fakeHost(10) {
			t.Errorf("without neighbours: %+v", v)
		}
		if v := d.Install(r, 0); v.Kind != envelope.VerdictRejected || len(d.groups) != 0 {
			t.Errorf("without neighbours: %+v", v)
		}
	})
	f.meet(1000, 5)
	f.control.do(func() {
		d := f.control.dir
		if v := d.Check(r, 0); v.Kind != envelope.VerdictRejected || v.Problem.Reason != envelope.PathMTUMismatch || v.Problem.Value != 512 {
			t.Errorf("with a link of 1000 bytes: %+v", v)
		}
	})
	f.meet(1500, 5)
	f.control.do(func() {
		d := f.control.dir
		if v := d.Check(r, 0); v != accepted {
			t.Errorf("%+v", v)
		}
		// The answers of the hosts are old now, which is no reason to fail.
		h := d.hosts.Of(fakeHost(1))
		at := h.At()
		at.Ifindex, at.Links = 3, []int{3}
		d.hosts.Answered(h, at, nil, d.now())
		for h := range d.hosts.All() {
			h.DropAnswer()
		}
		if v := d.Install(r, 0); v.Kind != envelope.VerdictLater {
			t.Errorf("a member has moved since: %+v", v)
		}
		d.forgetPending(r.Group)
		f.know(2)
		if v := d.Check(r, 0); v != accepted {
			t.Errorf("%+v", v)
		}
		for h := range d.hosts.All() {
			h.DropAnswer()
		}
		if v := d.Install(r, 0); v != accepted {
			t.Errorf("%+v", v)
		}
		if len(d.checked) != 0 {
			t.Error("a checked registration is kept after its Install")
		}
		// What Check has accepted is of use to that registration alone.
		other := *r
		if v := d.Check(&other, 0); v.Kind != envelope.VerdictLater {
			t.Errorf("with old answers: %+v", v)
		}
		d.forgetPending(r.Group)
		f.know(2)
		d.Check(&other, 0)
		for h := range d.hosts.All() {
			h.DropAnswer()
		}
		if v := d.Install(r, 0); v.Kind != envelope.VerdictLater {
			t.Errorf("another registration was checked: %+v", v)
		}
		d.forgetPending(r.Group)
		f.know(2)
		d.Check(&other, 0)
		d.expireChecked(d.now() + 2*checkedTTL)
		if len(d.checked) != 0 {
			t.Error("a checked registration is kept for ever")
		}
	})
}

// A change of a neighbour is told the workers of the groups with a leg there, and of no
// others, some groups in each iteration.
func TestGroupsHearOfNewSessions(t *testing.T) {
	f := newFakeSwitch(t, 4, 2)
	f.meet(1500, 5)
	regs := []*envelope.Registration{f.treeRegistration(), f.treeRegistration()}
	regs[1].Group = fakeGroup(1)
	for j, n := range regs[1].Tree.Legs {
		if n == 2 { // the second group has a leg to neighbour 1 alone
			regs[1].Tree.Legs[j] = 1
		}
	}
	f.control.do(func() {
		d := f.control.dir
		f.know(2)
		for _, r := range regs {
			if v := d.Install(r, 0); v != accepted {
				t.Fatalf("installed: %+v", v)
			}
		}
		first, second := d.groups[regs[0].Group], d.groups[regs[1].Group]
		for _, c := range []struct {
			n    mcast.Neighbor
			want []*group
		}{{3, nil}, {2, []*group{first}}, {1, []*group{first, second}}} {
			d.neighbourChanged(c.n)
			if !reflect.DeepEqual(d.staleTables, c.want) {
				t.Errorf("neighbour %d has changed: %d groups are to be told, want %d", c.n, len(d.staleTables), len(c.want))
			}
		}
		d.Remove(regs[1].Group, envelope.Left)
	})
	f.eventually("the workers have been told", func() (done bool) {
		f.control.do(func() { done = len(f.control.dir.staleTables) == 0 })
		return done
	})
}
