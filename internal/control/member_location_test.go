// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// What a member says counts by its port and from its MAC address: those of the group that
// it is about, while its groups differ; the last ones, while the kernel has no place; and
// for the Ack of one that has left, those that it had then. A host that is no member of the
// group has no place.
func TestMembersSpeakFromTheirPlaces(t *testing.T) {
	f := suspectSwitch(t, 4)
	f.register(0, 3, 0x100, "strict")
	f.register(1, 3, 0x200, "strict")
	f.underKey(1, 5)
	c := f.control
	home, other := dataplane.Origin{Port: 2, MAC: rocev2.MAC(f.locator.at[fakeHost(2)].MAC)}, dataplane.Origin{Port: 3, MAC: rocev2.MAC{2, 9, 9, 9, 9, 9}}
	check := func(what string, group, host int, from dataplane.Origin, left, want bool) {
		t.Helper()
		c.do(func() {
			c.dir.cameFrom = from
			if got := c.dir.FromMember(fakeGroup(group), fakeHost(host), 0, left); got != want {
				t.Errorf("%s: %v", what, got)
			}
		})
	}
	for range 3 {
		f.bring(3, &envelope.Message{
			Header: envelope.Header{Epoch: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(2), 4797)},
			Body:   &envelope.Leave{Member: envelope.MemberKey{IP: fakeHost(2), QPN: 0x102}},
		})
	}
	f.eventually("the envelopes are counted", func() bool {
		n := uint64(0)
		c.do(func() { n = c.count.envelope[envelope.WrongLocation] })
		return n == 3
	})
	f.mu.Lock()
	warnings := slices.DeleteFunc(slices.Clone(f.warnings), func(s string) bool { return !strings.HasPrefix(s, "envelope refused ") })
	f.mu.Unlock()
	if len(warnings) != 1 || !strings.Contains(warnings[0], "Leave in the name of member 10.77.0.3, who is at f2 "+home.MAC.String()) || !strings.Contains(warnings[0], "f3") {
		t.Errorf("the operator is warned by %q", warnings)
	}
	check("from its place", 0, 2, home, false, true)
	check("tagged, as its port's VLAN is", 0, 2, dataplane.Origin{Port: 2, MAC: home.MAC, VLAN: 7}, false, true)
	check("by another port", 0, 2, dataplane.Origin{Port: 1, MAC: home.MAC}, false, false)
	check("from another MAC address", 0, 2, dataplane.Origin{Port: 2, MAC: other.MAC}, false, false)
	check("no member", 0, 3, other, false, true)
	check("no group", 2, 2, other, false, true)
	check("no member of the group that is told it has left", 2, 2, other, true, false)

	c.do(func() {
		h := c.dir.hosts.Of(fakeHost(2))
		at := h.Pinned()
		c.dir.hosts.Join(fakeGroup(1), 5, h.IP(), at.At(4, locate.MAC(other.MAC), 0))
		c.dir.hosts.Follow(h, 5)
	})
	check("moved in another group alone", 0, 2, other, false, false)
	check("moved in this group", 1, 2, other, false, true)
	check("moved from here", 1, 2, home, false, false)
	c.do(func() {
		c.dir.hosts.FollowKernel(true)
		c.dir.hosts.Answered(c.dir.hosts.Of(fakeHost(2)), locate.Location{}, errors.New("lost"), c.now())
	})
	check("lost, from where it was", 0, 2, home, false, true)
	check("lost, from elsewhere", 0, 2, other, false, false)

	for i := range 2 {
		if err := f.RemoveMember(fakeGroup(i), fakeHost(2)); err != nil {
			t.Fatal(err)
		}
	}
	check("an Ack from where it was when it left", 0, 2, home, true, true)
	check("an Ack from elsewhere", 0, 2, other, true, false)
	check("anything else of one that has left", 0, 2, other, false, true)
	if envelope.WrongLocation.Normal() || !envelope.WrongLocation.Unanswered() {
		t.Error("the operator does not hear of envelopes from elsewhere")
	}
}

// A member whose location the kernel has lost is where the key of its group has it, not where another
// key's group has it.
func TestLostMemberIsInThePlaceOfItsKey(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.register(0, 3, 0x100, "strict")
	f.control.do(func() {
		d := f.control.dir
		g, h := d.groups[fakeGroup(0)], d.hosts.Of(fakeHost(2))
		ofKey := h.Pinned()
		ofKey.MAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
		i, _ := g.hostSlot(fakeHost(2))
		g.slots[i].location = nil
		d.hosts.Join(fakeGroup(0), g.key, h.IP(), ofKey)
		if at, member := d.memberLocation(fakeGroup(0), fakeHost(2), g.key, false); !member || !bytes.Equal(at.MAC, ofKey.MAC) {
			t.Errorf("it is at %v, member %v, want %v", at.MAC, member, ofKey.MAC)
		}
	})
}
