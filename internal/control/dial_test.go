// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/rocev2"
)

// deliver passes a message of host i for group n to the switch.
func (f *fakeSwitch) deliver(i, n int, m *cm.Message) {
	f.t.Helper()
	f.control.do(func() { f.left = nil })
	p := rocev2.Path{SrcMAC: rocev2.MAC(f.locator.place(fakeHost(i)).MAC), Src: fakeHost(i), Dst: fakeGroup(n)}
	b := make([]byte, 400)
	if err := f.plane.Deliver(dataplane.Frame{Port: i, Bytes: b[:rocev2.BuildMAD(b, &p, 0, m.Append(nil))]}); err != nil {
		f.t.Fatal(err)
	}
}

// answerREQs waits for the REQs of group n to its listeners, and answers them.
func (f *fakeSwitch) answerREQs(n, listeners int, qpn rocev2.QPN) {
	f.t.Helper()
	answered := map[netip.Addr]bool{}
	f.eventually("the listeners are dialled and have answered", func() bool {
		for _, m := range f.sent(cm.ConnectRequest) {
			if answered[m.Request.Dst] {
				continue
			}
			answered[m.Request.Dst] = true
			for i := range listeners + 1 {
				if fakeHost(i) == m.Request.Dst {
					f.deliver(i, n, &cm.Message{Attribute: cm.ConnectReply, TID: m.TID, LocalID: cm.CommID(i), RemoteID: m.LocalID, Reply: cm.Reply{QPN: qpn + rocev2.QPN(i), PSN: 5, GUID: cm.GUID(i)}})
				}
			}
		}
		return len(answered) == listeners
	})
}

// A group whose listeners are dialled is registered when these have answered, under an
// address of its own for each dialler, and is nobody else's to change.
func TestDialledGroup(t *testing.T) {
	f := newFakeSwitch(t, 4, 2)
	g := &api.CreateGroup{
		Group: fakeGroup(0), Port: 7471, Policy: api.PolicyStrict, From: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/32")}, WaitMS: 60_000,
		Listeners: []netip.AddrPort{netip.AddrPortFrom(fakeHost(1), 9), netip.AddrPortFrom(fakeHost(2), 9)}, Replies: api.RepliesSource, Sessions: 2,
	}
	if err := f.CreateGroup(g); err != nil {
		t.Fatal(err)
	}
	var e *api.Error
	for n := range 2 {
		if err := f.CreateGroup(f.create(n, 3)); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists {
			t.Errorf("group %d created in its place: %v", n, err)
		}
		f.request(0, 0, 0, rocev2.QPN(0x100+n))
		f.answerREQs(0, 2, rocev2.QPN(0x200+0x10*n))
		f.eventually("the group is registered", func() bool { return len(f.members(n)) == 3 })
		byHand := &api.Register{Group: fakeGroup(n), QPN: api.DefaultQPN, PMTU: 1024, Policy: api.PolicyStrict, Members: []api.RegisterMember{f.record(0, 0x500), f.record(1, 0x501)}}
		if err := f.Register(byHand); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists || !strings.Contains(err.Error(), "10.77.254.1") {
			t.Errorf("registered by hand: %v", err)
		}
	}
	first, _ := f.Group(fakeGroup(0))
	second, err := f.Group(fakeGroup(1))
	if err != nil || first.Origin != "rdma-cm" || first.Replies != api.RepliesSource || first.Dialled.IsValid() || second.Dialled != fakeGroup(0) || first.QPN == second.QPN {
		t.Fatalf("%+v\n%+v, %v", first, second, err)
	}
	if want := map[netip.Addr]api.QPN{fakeHost(0): 0x101, fakeHost(1): 0x211, fakeHost(2): 0x212}; f.members(1)[fakeHost(1)] != want[fakeHost(1)] || f.members(1)[fakeHost(0)] != want[fakeHost(0)] {
		t.Errorf("members %v, want %v", f.members(1), want)
	}
	for n, g := range []*api.Group{first, second} { // on the wire both are the first one
		var psn rocev2.PSN
		f.control.do(func() {
			reg, _, _ := f.control.registrar.Group(g.IP)
			psn = reg.Members[0].SQPSN
		})
		p := rocev2.Path{SrcMAC: rocev2.MAC(f.locator.place(fakeHost(0)).MAC), Src: fakeHost(0), Dst: fakeGroup(0)}
		b := make([]byte, 400)
		b = b[:rocev2.BuildPacket(b, &p, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: rocev2.QPN(g.QPN), PSN: psn}, []byte("data"))]
		if err := f.plane.Deliver(dataplane.Frame{Port: 0, Bytes: b}); err != nil {
			t.Fatal(err)
		}
		f.eventually("each has had its own packet", func() bool {
			a, err := f.Group(fakeGroup(0))
			b, err2 := f.Group(fakeGroup(1))
			return err == nil && err2 == nil && a.Counters.DataIn == 1 && b.Counters.DataIn == uint64(n)
		})
	}
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Error(err)
	}
	for n := range 2 {
		f.eventually("both are gone", func() bool { return f.members(n) == nil })
		if err := f.CreateGroup(f.create(n, 3)); err != nil {
			t.Errorf("group %d after the end: %v", n, err)
		}
	}
}
