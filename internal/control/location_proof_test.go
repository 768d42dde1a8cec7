// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// enroll registers group n of the first hosts by an envelope of host 0.
func (f *fakeSwitch) enroll(n, members int, qpn api.QPN) {
	f.t.Helper()
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: members}
	for i := range members {
		m := f.record(i, qpn+api.QPN(i))
		body.Members = append(body.Members, record(&m))
	}
	message := &envelope.Message{Header: head, Body: &envelope.Register{GroupBody: body}}
	f.control.do(func() { // the answer to one without an instance has it
		var out envelope.Output
		b, err := envelope.Append(nil, message, nil, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		f.control.registrar.Input(f.control.now(), head.ReplyTo, b, &out)
		m, err := envelope.Open(out.Packets[0].Data, nil, true)
		if err != nil {
			f.t.Fatal(err)
		}
		message.Instance, message.Epoch = m.Instance, m.Body.(*envelope.Challenge).EpochKnown+1
	})
	if !f.bring(0, message) {
		f.t.Fatal("no room for an envelope")
	}
}

// proving waits until a host is asked because of a registration, and returns where: ask 1 is
// where it was seen.
func (f *fakeSwitch) proving(host, ask int) (a location.Request) {
	f.t.Helper()
	f.eventually("the host is asked", func() bool {
		f.control.do(func() { a = f.control.dir.inquirer.ProofOf(fakeHost(host), 0)[ask] })
		return a.Nonce != envelope.Nonce{}
	})
	return a
}

// proves has a host answer a question from a spot.
func (f *fakeSwitch) proves(group, host int, a location.Request, by dataplane.Origin) {
	f.control.do(func() {
		f.control.dir.inquirer.Here(by, &envelope.Event{
			Group: fakeGroup(group), Member: envelope.MemberKey{IP: fakeHost(host)}, Nonce: a.Nonce,
		})
		f.control.doDue()
	})
}

func (f *fakeSwitch) installed(group int) bool {
	f.t.Helper()
	_, err := f.Group(fakeGroup(group))
	return err == nil
}

// A group that is registered by envelope is there when each member has answered from the
// place that it was asked at. An answer from elsewhere counts after a question there. What
// is proved counts for the key's other groups.
func TestMembersProveTheirPlaces(t *testing.T) {
	f := suspectSwitch(t, 4)
	f.enroll(0, 3, 0x100)
	one, two := f.proving(1, 0), f.proving(2, 0)
	f.proves(0, 0, f.proving(0, 0), f.proving(0, 0).Origin)
	f.proves(0, 1, one, dataplane.Origin{Port: one.Origin.Port, MAC: rocev2.MAC{2, 9}, VLAN: 0}) // from another MAC address
	f.proves(0, 1, two, one.Origin)                                                              // a proof with the nonce for another host
	f.proves(0, 1, location.Request{}, one.Origin)                                               // a proof without a nonce
	f.proves(0, 2, two, two.Origin)
	if f.installed(0) {
		t.Fatal("the group is there, and a member has not answered from its place")
	}
	there := f.proving(1, 1)
	if there.Origin != (dataplane.Origin{Port: one.Origin.Port, MAC: rocev2.MAC{2, 9}, VLAN: 0}) {
		t.Errorf("the member was seen at %+v, and is asked at %+v", dataplane.Origin{Port: one.Origin.Port, MAC: rocev2.MAC{2, 9}, VLAN: 0}, there.Origin)
	}
	elsewhere := dataplane.Origin{Port: 3, MAC: one.Origin.MAC, VLAN: 0}
	f.proves(0, 1, one, elsewhere)
	if there = f.proving(1, 1); there.Origin != elsewhere {
		t.Errorf("the member was seen at %+v, and is asked at %+v", elsewhere, there.Origin)
	}
	f.proves(0, 1, there, one.Origin)
	if f.installed(0) {
		t.Fatal("the group is there, and a member was asked at one place, and has answered from another")
	}
	f.proves(0, 1, there, elsewhere)
	f.eventually("the group is there", func() bool { return f.installed(0) })
	if got := f.placeIn(0, 1); got != "f3 "+one.Origin.MAC.String() {
		t.Errorf("the member is at %s", got)
	}
	c := f.control
	c.do(func() {
		if h := c.dir.hosts.Of(fakeHost(1)); h.Pinned().Ifindex != 4 || h.At().Ifindex != 4 || c.dir.inquirer.Count().Stray != 5 {
			t.Errorf("pinned at interface %d, known at %d, %d answers from elsewhere", h.Pinned().Ifindex, h.At().Ifindex, c.dir.inquirer.Count().Stray)
		}
	})

	f.enroll(1, 3, 0x200)
	f.eventually("another group of the same members is there", func() bool { return f.installed(1) })
}

// A registration whose member does not answer is rejected after locate_timeout: the log
// says where it was asked, and from where it has answered. What the kernel says meanwhile
// is followed. Nobody is asked any more then.
func TestAMemberProvesNothing(t *testing.T) {
	f := suspectSwitch(t, 3)
	f.control.do(func() { f.control.ports[0].Bridge = 7 }) // no way from the members' bridge
	f.enroll(0, 3, 0x100)
	for i := range 2 {
		f.proves(0, i, f.proving(i, 0), f.proving(i, 0).Origin)
	}
	a := f.proving(2, 0)
	f.proves(0, 2, a, dataplane.Origin{Port: 0, MAC: a.Origin.MAC})
	f.control.do(func() {
		if b := f.control.dir.inquirer.ProofOf(fakeHost(2), 0)[1]; b.Nonce != (envelope.Nonce{}) {
			t.Errorf("asked behind port %d, where no route leads", b.Origin.Port)
		}
	})
	f.locator.set(2, 3, 0x77, nil)
	var at location.Request
	f.eventually("the kernel's word is followed", func() bool { at = f.proving(2, 0); return at.Origin.MAC[5] == 0x77 })
	var es []api.Event
	f.eventually("the registration is rejected", func() bool { es = f.events(0, api.EventRejected); return len(es) > 0 })
	want := "the member has not confirmed its location: 10.77.0.3 qpn 0x102 (the switch's kernel has it at MAC address " + at.Origin.MAC.String()
	end := "; inquiry at f2 " + at.Origin.MAC.String() + ", answer: from f0 " + a.Origin.MAC.String()
	if r := es[0].Reason; len(es) != 1 || !strings.HasPrefix(r, want) || !strings.HasSuffix(r, end) {
		t.Errorf("events %+v", es)
	}
	f.mu.Lock()
	if n := len(slices.DeleteFunc(slices.Clone(f.warnings), func(s string) bool { return !strings.HasPrefix(s, "a member has not confirmed that it is where") })); n != 1 {
		t.Errorf("%d warnings among %q", n, f.warnings)
	}
	f.mu.Unlock()
	f.eventually("nobody is asked any more", func() (none bool) {
		f.control.do(func() { _, asked := f.control.dir.inquirer.NextProof(); none = !asked })
		return none
	})
	f.control.do(func() { f.control.dir.hosts.FollowKernel(true) })
	f.enroll(1, 3, 0x200)
	f.eventually("where the kernel is followed nobody is asked", func() bool { return f.installed(1) })
}

// changeMAC gives host i another MAC address, which the kernel does not know.
func (l *fakeLocator) changeMAC(i, ifindex int, mac byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.really[fakeHost(i)] = locate.Location{Hop: fakeHost(i), Links: []int{ifindex}, Ifindex: ifindex, MAC: net.HardwareAddr{2, 0, 0, 0, 0, mac}}
}

func (l *fakeLocator) timesInvalidated(i int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.invalidated[fakeHost(i)]
}

// A host whose MAC address is another one than the kernel has is found by the registration that asks
// for it, and has to confirm its new place. The kernel gives up no entry of a host that answers, nor
// that of a member.
func TestMemberWithANewMACAddress(t *testing.T) {
	f := suspectSwitch(t, 3)
	f.locator.changeMAC(2, 3, 0x99)
	f.enroll(0, 3, 0x100)
	for i := range 2 {
		a := f.proving(i, 0)
		f.proves(0, i, a, a.Origin)
	}
	var a location.Request
	f.eventually("the host is asked at its new MAC address", func() bool { a = f.proving(2, 0); return a.Origin.MAC[5] == 0x99 })
	if f.installed(0) {
		t.Fatal("the kernel's word was enough")
	}
	f.proves(0, 2, a, a.Origin)
	f.eventually("the group is there", func() bool { return f.installed(0) })
	if a, b := f.locator.timesInvalidated(2), f.locator.timesInvalidated(1); a != 1 || b != 0 {
		t.Errorf("%d times for the host with a new address, %d for one that answers", a, b)
	}
}
