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
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// forge delivers a message in the name of host i from a stranger's port and MAC address.
func (f *fakeSwitch) forge(stranger, i, n int, m *cm.Message) {
	f.t.Helper()
	p := rocev2.Path{SrcMAC: rocev2.MAC(f.locator.place(fakeHost(stranger)).MAC), Src: fakeHost(i), Dst: fakeGroup(n)}
	b := make([]byte, 400)
	if err := f.plane.Deliver(dataplane.Frame{Port: stranger, Bytes: b[:rocev2.BuildMAD(b, &p, 0, m.Append(nil))]}); err != nil {
		f.t.Fatal(err)
	}
}

// req returns a REQ of host i for group n.
func req(i, n int, qpn rocev2.QPN) *cm.Message {
	ip, group := fakeHost(i), fakeGroup(n)
	return &cm.Message{Attribute: cm.ConnectRequest, TID: 1, LocalID: cm.CommID(qpn), Request: cm.Request{
		ServiceID: 0x01060000 + 7471, GUID: cm.GUID(i), QPN: qpn, PSN: 0x777, MTU: 3, LocalGID: ip, RemoteGID: group, Src: ip, Dst: group,
	}}
}

// dropped waits until the switch has dropped a number of messages for a reason.
func (f *fakeSwitch) dropped(reason string, n uint64) {
	f.t.Helper()
	f.eventually(reason, func() bool {
		s, err := f.Stats()
		return err == nil && s.Drops[reason] >= n
	})
}

// waiting waits until a number of members have connected to group n, of those expected.
func (f *fakeSwitch) waiting(n int, text string) {
	f.t.Helper()
	f.eventually(text, func() bool {
		_, err := f.Group(fakeGroup(n))
		return err != nil && strings.Contains(err.Error(), text)
	})
}

// dialled is a group whose dialler is host 0, and whose listeners are the next ones.
func dialled(n, listeners, sessions int) *api.CreateGroup {
	g := &api.CreateGroup{
		Group: fakeGroup(n), Port: 7471, Policy: api.PolicyStrict, From: []netip.Prefix{netip.PrefixFrom(fakeHost(0), 32)}, WaitMS: 60_000,
		Replies: api.RepliesSource, Sessions: sessions,
	}
	for i := range listeners {
		g.Listeners = append(g.Listeners, netip.AddrPortFrom(fakeHost(i+1), 9))
	}
	return g
}

// A stranger's messages in the name of a member that waits have no effect, whether its host is a member of other
// groups or of none: it is not replaced, and not taken out.
func TestStrangerDisplacesNoMemberThatWaits(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	f.request(1, 1, 0, 0x101)
	f.waiting(0, "2 of 3 have")
	f.forge(3, 1, 0, req(1, 0, 0x999))
	f.dropped("cm_wrong_source", 1)
	own := rocev2.MAC(f.locator.place(fakeHost(1)).MAC)
	p := rocev2.Path{SrcMAC: own, Src: fakeHost(1), Dst: fakeGroup(0)} // with the member's MAC address, too
	b := make([]byte, 400)
	if err := f.plane.Deliver(dataplane.Frame{Port: 3, Bytes: b[:rocev2.BuildMAD(b, &p, 0, req(1, 0, 0x999).Append(nil))]}); err != nil {
		t.Fatal(err)
	}
	f.dropped("cm_wrong_source", 2)
	guid := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	f.forge(3, 1, 0, &cm.Message{Attribute: cm.ConnectReject, TID: 1, LocalID: 0x101, Reject: cm.Reject{Of: cm.RejectedOther, Reason: cm.TimedOut, ARI: guid}})
	f.dropped("cm_wrong_source", 3)
	f.request(2, 2, 0, 0x102)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	if qpn := f.members(0)[fakeHost(1)]; qpn != 0x101 {
		t.Errorf("the member has queue pair %#x", qpn)
	}
	f.eventually("the log names the port", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return strings.Contains(strings.Join(f.warnings, "\n"), "a message of RDMA-CM has come from elsewhere")
	})
}

// A member that waits keeps its location whatever the kernel learns from a stranger's frame; when its
// connection has ended the kernel's word counts.
func TestMemberThatWaitsIsPinned(t *testing.T) {
	f := suspectSwitch(t, 4)
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	f.request(1, 1, 0, 0x101)
	f.waiting(0, "1 of 3 have")
	poisoned := f.locator.place(fakeHost(3))
	poisoned.Hop = fakeHost(1)
	f.locator.mu.Lock()
	f.locator.at[fakeHost(1)] = poisoned
	f.locator.mu.Unlock()
	asked := f.locator.questions(2)[1]
	f.changes.Neighbour(fakeHost(1), locate.Neighbour{MAC: locate.MAC(poisoned.MAC), Usable: true})
	f.control.do(func() { f.control.kernel.pacer.noteChange(f.control.now(), true) })
	f.eventually("the kernel is asked again", func() bool { return f.locator.questions(2)[1] > asked })
	f.forge(3, 1, 0, req(1, 0, 0x999))
	f.dropped("cm_wrong_source", 1)
	f.waiting(0, "1 of 3 have: 10.77.0.2 (requested)")
	if err := f.Delete(fakeGroup(0)); err != nil {
		t.Fatal(err)
	}
	f.control.do(func() {
		if h := f.control.dir.hosts.Of(fakeHost(1)); h != nil && h.Pinned().Ifindex != 0 {
			t.Errorf("its connection has ended, and it is pinned to %v", h.Pinned())
		}
	})
}

// A stranger's REQ in the dialler's name dials nobody, and a stranger answers for no listener.
func TestStrangerDialsNobody(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	if err := f.CreateGroup(dialled(0, 2, 1)); err != nil {
		t.Fatal(err)
	}
	f.forge(3, 0, 0, req(0, 0, 0x100))
	f.dropped("cm_wrong_source", 1)
	if n := len(f.sent(cm.ConnectRequest)); n > 0 {
		t.Fatalf("%d REQs to listeners", n)
	}
	f.request(0, 0, 0, 0x100)
	var asked cm.Message
	f.eventually("a listener is dialled", func() bool {
		for _, m := range f.sent(cm.ConnectRequest) {
			if m.Request.Dst == fakeHost(1) {
				asked = m
			}
		}
		return asked.LocalID != 0
	})
	f.forge(3, 1, 0, &cm.Message{Attribute: cm.ConnectReply, TID: asked.TID, LocalID: 7, RemoteID: asked.LocalID, Reply: cm.Reply{QPN: 0x666, PSN: 5, GUID: 3}})
	f.dropped("cm_wrong_source", 2)
	f.answerREQs(0, 2, 0x200)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	if qpn := f.members(0)[fakeHost(1)]; qpn != 0x201 {
		t.Errorf("the listener has queue pair %#x", qpn)
	}
}

// A REQ of a host that the kernel is resolving waits for that, and counts if it has come from there: a stranger's,
// who was first, does not. One of a host that is not found is dropped.
func TestREQWaitsForTheHostsLocation(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	if err := f.CreateGroup(f.create(0, 2)); err != nil {
		t.Fatal(err)
	}
	f.locator.set(0, 1, 0, locate.ErrPending)
	f.locator.set(2, 3, 2, errors.New("no such host"))
	f.forge(3, 0, 0, req(0, 0, 0x999))
	at := rocev2.Path{SrcMAC: rocev2.MAC{2, 0, 0, 0, 0, 0}, Src: fakeHost(0), Dst: fakeGroup(0)}
	b := make([]byte, 400)
	if err := f.plane.Deliver(dataplane.Frame{Port: 0, Bytes: b[:rocev2.BuildMAD(b, &at, 0, req(0, 0, 0x100).Append(nil))]}); err != nil {
		t.Fatal(err)
	}
	f.eventually("both wait", func() (both bool) {
		f.control.do(func() { both = len(f.control.connections.heldMADs.waiting) == 2 })
		return both
	})
	f.forge(3, 2, 0, req(2, 0, 0x102))
	f.dropped("cm_unlocated", 1)
	f.locator.set(0, 1, 0, nil)
	f.waiting(0, "1 of 2 have: 10.77.0.1 (requested)")
	f.dropped("cm_wrong_source", 1)
	f.request(1, 1, 0, 0x101)
	f.eventually("the group is registered", func() bool { return f.members(0)[fakeHost(0)] == 0x100 })
	f.locator.set(3, 4, 3, locate.ErrPending)
	f.forge(1, 3, 0, req(3, 0, 0x103))
	f.dropped("cm_unlocated", 2) // in time
}

// REQs in the names of hosts that are not found wait for a time, and a port's take no others' room.
func TestREQsThatWaitHaveShares(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.control.do(func() {
		q := &f.control.connections.heldMADs
		for port := range 2 {
			for i := range maxHeldMADs {
				ip := netip.AddrFrom4([4]byte{10, 9, byte(i), 1})
				for range maxHeldMADsPerHost + 1 {
					if q.hasRoom(port, ip) {
						q.waiting = append(q.waiting, mad{from: dataplane.Origin{Port: port}, host: ip, until: f.control.now()})
					}
				}
			}
		}
		if n := len(q.waiting); n != 2*maxHeldMADsPerPort {
			t.Errorf("%d wait, want %d of each port", n, maxHeldMADsPerPort)
		}
		if !q.hasRoom(2, fakeHost(0)) || q.hasRoom(1, fakeHost(0)) {
			t.Error("a port's messages take the room of another one's, or more than its own")
		}
		first := q.waiting[0].host
		if q.waiting = q.waiting[:maxHeldMADsPerHost]; q.hasRoom(0, first) || !q.hasRoom(0, fakeHost(0)) || !q.hasRoom(1, first) {
			t.Error("a host has more room than its share, or takes that of others")
		}
		if q.waiting = q.waiting[:1]; !q.hasRoom(0, first) {
			t.Error("a host has room for one message alone")
		}
	})
	f.dropped("cm_unlocated", 1)
	f.eventually("nothing waits", func() (none bool) {
		f.control.do(func() { none = len(f.control.connections.heldMADs.waiting) == 0 })
		return none
	})
}

// A captured REQ under a key, with another PSN and ID, from where its member is, displaces it neither while it waits
// nor afterwards.
func TestCapturedREQDisplacesNobody(t *testing.T) {
	f := newFakeSwitchWith(t, 3, 1, keyed(""))
	first := f.connectKeyed(0, 0, 0x100, 2)
	f.waiting(0, "1 of 2 have: 10.77.0.1 (requested)")
	captured := func(id cm.CommID) {
		t.Helper()
		x := *first
		x.LocalID, x.Request.PSN = id, 0x123
		f.deliver(0, 0, &x)
		f.eventually("it is challenged", func() bool {
			for _, m := range f.sent(cm.ConnectReject) {
				if m.RemoteID == id && m.Data[1] == byte(cm.Unproven) {
					return true
				}
			}
			return false
		})
	}
	captured(0x5005)
	f.connectKeyed(1, 0, 0x101, 2)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 2 })
	captured(0x5006)
	f.control.do(func() {
		reg, _, _ := f.control.registrar.Group(fakeGroup(0))
		for _, m := range reg.Members {
			if m.IP == fakeHost(0) && (m.QPN != 0x100 || m.RQPSN != 0x777) {
				t.Errorf("the member has %v", m)
			}
		}
	})
	if es := f.events(0, api.EventRejected); len(es) > 0 {
		t.Errorf("a nonce that is asked for is an event: %+v", es)
	}
}

// A listener that the kernel has in a wrong place, as a stranger has told it, is pinned there for no
// more than a second: when it does not answer, all hosts are asked for it, and it is dialled where it
// is. It is pinned there when it has answered.
func TestDialledListenerIsElsewhere(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	wrong := f.locator.place(fakeHost(3))
	f.locator.mu.Lock()
	f.locator.really[fakeHost(1)], f.locator.at[fakeHost(1)] = f.locator.at[fakeHost(1)], wrong
	f.locator.mu.Unlock()
	if err := f.CreateGroup(dialled(0, 2, 1)); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	at := func() (at, pinned locate.Location) {
		f.control.do(func() {
			if h := f.control.dir.hosts.Of(fakeHost(1)); h != nil {
				at, pinned = h.At(), h.Pinned()
			}
		})
		return at, pinned
	}
	f.eventually("the listener is dialled where the kernel has it", func() bool {
		_, pinned := at()
		return pinned.Ifindex == wrong.Ifindex && len(f.sent(cm.ConnectRequest)) > 0
	})
	f.eventually("all hosts have been asked for it", func() bool { now, pinned := at(); return now.Ifindex == 2 && !pinned.Known() })
	f.answerREQs(0, 2, 0x200)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	if _, pinned := at(); pinned.Ifindex != 2 {
		t.Errorf("it is pinned to %v", pinned)
	}
}
