// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
)

// leaf is the switch behind a neighbour, with all members that it is asked for.
type leaf struct{}

func (leaf) Ways(netip.Addr) envelope.Ways { return envelope.Ways{Verdict: accepted, Here: true} }
func (leaf) Traffic(mcast.Neighbor) uint64 { return 0 }
func (leaf) Check(*envelope.Registration, envelope.KeyID) envelope.Verdict {
	return accepted
}
func (leaf) Install(*envelope.Registration, envelope.KeyID) envelope.Verdict { return accepted }
func (leaf) Remove(netip.Addr, envelope.EndReason)                           {}
func (leaf) RemoveMember(netip.Addr, envelope.MemberKey, envelope.EndReason) {}
func (leaf) HadSource(netip.Addr) bool                                       { return false }
func (leaf) FromMember(_, _ netip.Addr, _ envelope.KeyID, _ bool) bool       { return true }

// leafAt is the state of the link to the switch of ID 10 at port 1.
func leafAt(session uint64) neighbours.Link {
	l := gatewayAt(1, 10, session)
	l.Neighbour.MTU = 1500
	return l
}

// treeGroup registers group 0 of host 0, which is here, and of host 100, behind the switch of
// ID 10 at port 1. The adjacency may be lost for the grace.
func (f *fakeSwitch) treeGroup(h *fakeHellos, r *fakeRoutes, grace time.Duration) {
	t := f.t
	t.Helper()
	h.set(leafAt(0x100))
	r.set(fakeHost(100), by(1))
	r.set(fakeHost(0), by())
	f.eventually("the neighbour is up", func() (up bool) {
		f.control.do(func() { _, up = f.control.switches.Table.At(1) })
		return up
	})
	f.ways(fakeHost(100))
	f.ways(fakeHost(0))
	keys := envelope.Auth{Keys: envelope.Keys{1: []byte("the key of the switches in tests")}, Send: 1}
	master := netip.MustParseAddrPort("10.77.0.200:5000")
	reg := envelope.Registration{Group: fakeGroup(0), GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}, Lease: time.Minute}
	for i, k := range []int{0, 100} {
		m := f.record(k, api.QPN(0x100+i))
		reg.Members = append(reg.Members, record(&m))
	}
	other, err := envelope.NewRegistrar(envelope.RegistrarConfig{
		Secret: [envelope.SecretLen]byte{9}, Auth: envelope.Auth{Insecure: true}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.77.254.0/24")},
		Switch: envelope.SwitchConfig{ID: 10, Auth: keys, Planner: leaf{}},
	}, leaf{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := envelope.NewMaster(envelope.MasterConfig{Local: master, Auth: envelope.Auth{Insecure: true}}, reg)
	if err != nil {
		t.Fatal(err)
	}
	f.control.do(func() {
		c := f.control
		if err := c.registrar.SetSwitch(envelope.SwitchConfig{ID: 5, Auth: keys, Planner: c.dir, Grace: grace}); err != nil {
			t.Error(err)
			return
		}
		c.dir.hosts.FollowKernel(true)
		f.know(1)
		now := c.now()
		other.SetNeighbour(now, 1, &envelope.Adjacency{ID: 5, Session: 0x100, MTU: 1500})
		var ours, theirs envelope.Output
		m.Start(now, &ours)
		var fromHere func()
		fromHere = func() { // what the switch has to say
			packets, relays := slices.Clone(c.out.Packets), slices.Clone(c.out.Relays)
			c.sendOutput()
			for _, p := range packets {
				if p.Dst == master {
					m.Input(now, p.Src, p.Data, &ours)
					for _, q := range slices.Clone(ours.Packets) {
						c.registrar.Input(now, master, q.Data, &c.out)
						fromHere()
					}
				}
			}
			for _, x := range relays {
				other.InputFromSwitch(now, 1, x.Data, &theirs)
				for _, y := range slices.Clone(theirs.Relays) {
					c.registrar.InputFromSwitch(now, 1, y.Data, &c.out)
					fromHere()
				}
			}
		}
		for _, p := range slices.Clone(ours.Packets) {
			c.registrar.Input(now, master, p.Data, &c.out)
			fromHere()
		}
	})
	if len(f.events(0, api.EventRegistered)) != 1 {
		t.Fatalf("the group is not registered: %v", f.events(0, api.EventRejected))
	}
}

// A group ends when the neighbour that it is over stays away for the grace; log, journal and
// the group's last state say which switch was lost, and at which port.
func TestGroupEndsWithItsNeighbour(t *testing.T) {
	f, h, r := newFakeTree(t, 3, 1)
	f.treeGroup(h, r, 100*time.Millisecond)
	h.set(neighbours.Link{Port: 1, Reason: hello.Silent, Lost: hello.Silent})
	f.eventually("the group has ended", func() bool { return len(f.events(0, api.EventEnded)) == 1 })
	const why = "a switch of the tree was lost: switch 0000000000000005 lost switch 000000000000000a at port f1"
	if e := f.events(0, api.EventEnded)[0]; !strings.HasPrefix(e.Reason, why) {
		t.Errorf("the journal says %q", e.Reason)
	}
	list, err := f.EndedGroups()
	if err != nil || len(list) != 1 || list[0].Ended.Reason != why {
		t.Errorf("ended: %+v, %v", list, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.warnings, func(s string) bool { return strings.Contains(s, why) }) {
		t.Errorf("the log has no warning: %q", f.warnings)
	}
}

// A neighbour that is back within the grace keeps its groups, however often it goes.
func TestGroupStaysWithItsNeighbour(t *testing.T) {
	f, h, r := newFakeTree(t, 3, 1)
	f.treeGroup(h, r, time.Hour)
	for session := uint64(0x101); session < 0x110; session++ {
		h.set(neighbours.Link{Port: 1, Reason: hello.Silent, Lost: hello.Silent})
		f.eventually("the neighbour is down", func() (down bool) {
			f.control.do(func() { _, up := f.control.switches.Table.At(1); down = !up })
			return down
		})
		h.set(leafAt(session))
		f.eventually("the neighbour is up", func() (up bool) {
			f.control.do(func() { _, up = f.control.switches.Table.At(1) })
			return up
		})
	}
	if es := f.events(0, api.EventEnded); len(es) > 0 {
		t.Errorf("the group has ended: %+v", es)
	}
}
