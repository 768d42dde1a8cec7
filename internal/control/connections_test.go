// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/rocev2"
)

// request delivers the REQ of host i's queue pair qpn for group n by a port.
func (f *fakeSwitch) request(port, i, n int, qpn rocev2.QPN) {
	f.t.Helper()
	ip, group := fakeHost(i), fakeGroup(n)
	m := cm.Message{Attribute: cm.ConnectRequest, TID: 1, LocalID: cm.CommID(qpn), Data: []byte("hello"), Request: cm.Request{
		ServiceID: 0x01060000 + 7471, GUID: cm.GUID(i), QPN: qpn, PSN: 0x777, MTU: 3, LocalGID: ip, RemoteGID: group, Src: ip, Dst: group,
	}}
	p := rocev2.Path{SrcMAC: rocev2.MAC(f.locator.place(ip).MAC), Src: ip, Dst: group}
	b := make([]byte, 400)
	if err := f.plane.Deliver(dataplane.Frame{Port: port, Bytes: b[:rocev2.BuildMAD(b, &p, 0, m.Append(nil))]}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeSwitch) create(n, expect int) *api.CreateGroup {
	return &api.CreateGroup{Group: fakeGroup(n), Port: 7471, Expect: expect, Policy: api.PolicyStrict, From: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/24")}, WaitMS: 60_000}
}

// members returns the members of group n, with their queue pairs.
func (f *fakeSwitch) members(n int) map[netip.Addr]api.QPN {
	g, err := f.Group(fakeGroup(n))
	if err != nil {
		return nil
	}
	all := make(map[netip.Addr]api.QPN)
	for _, m := range g.Members {
		all[m.IP] = m.QPN
	}
	return all
}

// A group whose members connect by RDMA-CM is registered when all are there, is updated
// when one connects anew, and is nobody else's to change.
func TestConnectedGroup(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	var e *api.Error
	if err := f.CreateGroup(f.create(0, 3)); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists || !strings.Contains(err.Error(), "is there already, for members to connect to") {
		t.Errorf("created twice: %v", err)
	}
	f.request(0, 0, 0, 0x100)
	f.request(1, 1, 0, 0x101)
	f.eventually("two have connected", func() bool {
		_, err := f.Group(fakeGroup(0))
		return err != nil && strings.HasSuffix(err.Error(), "is not registered yet: members connect to port 7471, 2 of 3 have: 10.77.0.1 (requested), 10.77.0.2 (requested)")
	})
	f.request(2, 2, 0, 0x102)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	g, err := f.Group(fakeGroup(0))
	if err != nil || g.Origin != "rdma-cm" || g.PMTU != 1024 || g.QPN != api.DefaultQPN {
		t.Fatalf("%+v, %v", g, err)
	}
	f.request(1, 1, 0, 0x201) // its host has restarted
	f.eventually("the member has another queue pair", func() bool { return f.members(0)[fakeHost(1)] == 0x201 })
	byHand := &api.Register{Group: fakeGroup(0), QPN: api.DefaultQPN, PMTU: 1024, Policy: api.PolicyStrict, Members: []api.RegisterMember{f.record(0, 0x500), f.record(1, 0x501)}}
	if err := f.Register(byHand); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists {
		t.Errorf("registered by hand: %v", err)
	}
	if err := f.AddMember(fakeGroup(0), &api.AddMember{RegisterMember: f.record(3, 0x300)}); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists {
		t.Errorf("member added by hand: %v", err)
	}
	if err := f.RemoveMember(fakeGroup(0), fakeHost(2)); err != nil {
		t.Error(err)
	}
	f.request(3, 3, 0, 0x303) // in its place
	f.eventually("another one has joined", func() bool { return f.members(0)[fakeHost(3)] == 0x303 && len(f.members(0)) == 3 })
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Error(err)
	}
	if err := f.Register(byHand); err != nil {
		t.Errorf("registered by hand after the end: %v", err)
	}
	if err := f.RemoveMember(fakeGroup(0), fakeHost(1)); !errors.As(err, &e) || e.Reason != envelope.TooFewMembers.String() || !strings.Contains(err.Error(), "gleam group delete") {
		t.Errorf("the last receiver is removed: %v", err)
	}
	if err := f.CreateGroup(f.create(0, 3)); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists {
		t.Errorf("created in the place of a group: %v", err)
	}
	g2 := f.create(0, 3)
	g2.Group = netip.MustParseAddr("10.78.0.1")
	if err := f.CreateGroup(g2); err == nil {
		t.Error("created outside of the group prefixes")
	}
}

// A member that connects again with the queue pair that it has replaces itself, and its new connection stays.
func TestConnectedAgainWithItsQueuePair(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	f.request(1, 1, 0, 0x101)
	f.request(2, 2, 0, 0x102)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	ip, group, again := fakeHost(1), fakeGroup(0), cm.CommID(0x999)
	f.deliver(1, 0, &cm.Message{Attribute: cm.ConnectRequest, TID: 2, LocalID: again, Request: cm.Request{
		ServiceID: 0x01060000 + 7471, GUID: 1, QPN: 0x101, PSN: 0x888, MTU: 3, LocalGID: ip, RemoteGID: group, Src: ip, Dst: group,
	}})
	to := func(of cm.Attribute) bool {
		return slices.ContainsFunc(f.sent(of), func(m cm.Message) bool { return m.RemoteID == again })
	}
	f.eventually("it is answered", func() bool { return to(cm.ConnectReply) })
	if to(cm.DisconnectRequest) || len(f.members(0)) != 3 {
		t.Errorf("its new connection has ended; members %v", f.members(0))
	}
}

// A REQ in a member's name from elsewhere has no effect.
func TestREQFromElsewhere(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	if err := f.CreateGroup(f.create(0, 2)); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	f.request(1, 1, 0, 0x101)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 2 })
	f.request(2, 1, 0, 0x201)
	f.eventually("the REQ is dropped", func() bool {
		s, err := f.Stats()
		return err == nil && s.Drops["cm_wrong_source"] == 1
	})
	if qpn := f.members(0)[fakeHost(1)]; qpn != 0x101 {
		t.Errorf("the member has queue pair %#x", qpn)
	}
}

// A member's DREQ, which its kernel sends for a program that is killed too, is an event that says what it means to a
// strict group.
func TestDREQOfAMemberIsAnEvent(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f.request(i, i, 0, rocev2.QPN(0x100+i))
	}
	replies := make(map[netip.Addr]cm.Message)
	f.eventually("all are answered", func() bool {
		f.control.do(func() {
			for _, p := range f.control.connections.out.Packets {
				var m cm.Message
				if cm.Decode(p.MAD, &m) == cm.OK && m.Attribute == cm.ConnectReply {
					replies[p.To] = m
				}
			}
		})
		return len(replies) == 3
	})
	r := replies[fakeHost(2)]
	f.deliver(2, 0, &cm.Message{Attribute: cm.DisconnectRequest, TID: 1, LocalID: r.RemoteID, RemoteID: r.LocalID, DREQ: cm.DREQ{QPN: r.Reply.QPN}})
	f.eventually("the member is out", func() bool { return len(f.members(0)) == 2 })
	es := f.events(0, api.EventLeft)
	if len(es) != 1 || es[0].Member != fakeHost(2) || es[0].QPN != 0x102 ||
		es[0].Reason != "disconnected (DREQ): its program has disconnected, has ended or was killed; the strict group goes on without it, and its sender is not told" {
		t.Errorf("%+v", es)
	}
}

// A host that connects without end fills no log, and hides nothing of others.
func TestConnectingWithoutEndIsSampled(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	lines := func(of netip.Addr) (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, line := range f.log {
			if strings.Contains(line, "connection has changed its state") && strings.Contains(line, "member"+of.String()+"qpn") {
				n++
			}
		}
		return n
	}
	const times = 3 * stateBurst
	for i := range times {
		f.request(0, 0, 0, rocev2.QPN(0x100+i))
	}
	f.request(1, 1, 0, 0x900)
	f.eventually("the other one has connected", func() bool { return lines(fakeHost(1)) > 0 })
	if n := lines(fakeHost(0)); n < 1 || n > stateBurst {
		t.Errorf("%d lines of one host, which has connected %d times", n, times)
	}
}
