// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestValidate: the bounds of a registration that hold for every configuration of the switch.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(*Registration)
		want Reason
	}{
		{"as it is", func(*Registration) {}, NoReason},
		{"a lease of less than nothing", func(r *Registration) { r.Lease = -1 }, Malformed},
		{"an update under the next epoch", func(r *Registration) { r.Base = 5 }, NoReason},
		{"an update of itself", func(r *Registration) { r.Base, r.Epoch = 5, 5 }, Malformed},
		{"an update", func(r *Registration) { r.Base, r.Epoch = 5, 6 }, NoReason},
		{"a member without an address", func(r *Registration) { r.Members[1].IP = netip.Addr{} }, BadMember},
		{"a member of another family", func(r *Registration) { r.Members[1].IP = netip.MustParseAddr("fd00::1") }, FamilyMismatch},
		{"the group as a member", func(r *Registration) { r.Members[1].IP = r.Group }, BadMember},
		{"the last sq_psn", func(r *Registration) { r.Members[1].SQPSN = rocev2.PSNMask }, NoReason},
		{"the last rq_psn", func(r *Registration) { r.Members[1].RQPSN = rocev2.PSNMask }, NoReason},
		{"no such sq_psn", func(r *Registration) { r.Members[1].SQPSN = rocev2.PSNMask + 1 }, BadMember},
		{"no such rq_psn", func(r *Registration) { r.Members[1].RQPSN = rocev2.PSNMask + 1 }, BadMember},
		{"targets by request", func(r *Registration) { r.TargetKey = 9 }, NoReason},
		{"targets by request under evict", func(r *Registration) { r.Policy, r.TargetKey = mcast.Evict, 9 }, NoReason},
		{"a quorum", func(r *Registration) { r.Policy, r.Quorum = mcast.Quorum, 1 }, NoReason},
		{"targets by request with a quorum", func(r *Registration) { r.Policy, r.Quorum, r.TargetKey = mcast.Quorum, 1, 9 }, BadPolicy},
		{"a wrong QPN above all", func(r *Registration) { r.Policy, r.Quorum, r.TargetKey, r.QPN = mcast.Quorum, 1, 9, 1 }, BadVirtualQPN},
		{"a window under the key 0", func(r *Registration) { *r = withWindows(*r); r.Window.RKey = 0 }, NoReason},
		{"a window under the targets' key", func(r *Registration) { *r = withWindows(*r); r.TargetKey = r.Window.RKey }, BadWindow},
		{"a window beside the targets' key", func(r *Registration) { *r = withWindows(*r); r.TargetKey = r.Window.RKey + 1 }, NoReason},
	} {
		r := sample(1, 3)
		c.f(&r)
		got := NoReason
		if p := r.Validate(); p != nil {
			got = p.Reason
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSenderTimes: what follows from the timeout and the retries of the senders' queue
// pairs. A timeout of 14 is 67.1 ms, one of 15 twice as long.
func TestSenderTimes(t *testing.T) {
	unit := rocev2.AckTimeout(14)
	for _, c := range []struct {
		name             string
		deadAfter        time.Duration
		timeout, retries uint8
		total, deadMax   time.Duration
	}{
		{"nothing declared", DefaultDeadAfter, 0, 0, 0, unit * 7 / 2},
		{"the usual declared", DefaultDeadAfter, 14, 7, 8 * unit, unit * 7 / 2},
		{"longer", DefaultDeadAfter, 15, 3, 8 * unit, 3 * unit},
		{"the sender gives up early", DefaultDeadAfter, 14, 1, 2 * unit, DefaultDeadAfter},
		{"dead_after is set", time.Second, 14, 7, 8 * unit, 0},
		{"nobody is dead", 0, 14, 7, 8 * unit, 0},
	} {
		r := Registration{GroupParams: mcast.GroupParams{DeadAfter: c.deadAfter, SenderTimeout: c.timeout, SenderRetries: c.retries}}
		if got := r.SenderTimeoutTotal(); got != c.total {
			t.Errorf("%s: the sender gives up after %v, want %v", c.name, got, c.total)
		}
		if got := r.DeadAfterMax(); got != c.deadMax {
			t.Errorf("%s: dead_after grows to %v, want %v", c.name, got, c.deadMax)
		}
	}
}

// TestUnconfirmedLocationNamesTheMAC: the text has the MAC address that the Value carries.
func TestUnconfirmedLocationNamesTheMAC(t *testing.T) {
	p := Problem{Reason: LocationUnconfirmed, Member: sample(1, 1).Members[0].Key(), Value: 0x000203040506}
	if s := p.Error(); !strings.Contains(s, "00:02:03:04:05:06") {
		t.Error(s)
	}
}

// TestUnicast: the addresses that a host or a group can have.
func TestUnicast(t *testing.T) {
	for s, want := range map[string]bool{
		"10.0.0.1": true, "fd00::1": true, "fe80::1": true, "223.255.255.255": true, "255.255.255.254": true,
		"0.0.0.0": false, "::": false, "127.0.0.1": false, "::1": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "fe80::1%eth0": false,
	} {
		if got := unicast(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s: %t", s, got)
		}
	}
	if unicast(netip.Addr{}) {
		t.Error("no address is one")
	}
}

// TestQuestionsNameHosts: what asks for a member's location names an address of the
// group's family.
func TestQuestionsNameHosts(t *testing.T) {
	for _, c := range []struct {
		ip       string
		v6, good bool
	}{{"10.0.0.1", false, true}, {"10.0.0.1", true, false}, {"fd00::1", true, true}, {"fd00::1", false, false}, {"fe80::1%eth0", true, false}} {
		if _, err := appendNonce(nil, netip.MustParseAddr(c.ip), &Nonce{}, c.v6); (err == nil) != c.good {
			t.Errorf("%s, IPv6 %t: %v", c.ip, c.v6, err)
		}
	}
}

// TestMemberFaults: a refusal of a member says what is wrong with it.
func TestMemberFaults(t *testing.T) {
	for _, c := range []struct {
		f    func(*Registration)
		says string
	}{
		{func(r *Registration) { r.Members[1].IP = netip.MustParseAddr("224.0.0.5") }, "invalid member: 224.0.0.5 qpn 0x101: not the unicast address of a host"},
		{func(r *Registration) { r.Members[1].IP = r.Group }, "invalid member: 10.9.0.1 qpn 0x101: the group's own address is no host's"},
		{func(r *Registration) { r.Members[1].QPN = 1 }, "invalid member: 10.1.0.2 qpn 0x1: no RC queue pair has this number: 0x10 to 0xfffffe are"},
		{func(r *Registration) { r.Members[1].IP = r.Members[0].IP }, "overlapping members: 10.1.0.1 qpn 0x101: the registration has this address twice"},
		{func(r *Registration) { r.Members[1].SQPSN = rocev2.PSNMask + 1 }, "invalid member: 10.1.0.2 qpn 0x101"},
	} {
		r := sample(1, 3)
		c.f(&r)
		if p := r.Validate(); p == nil || p.Error() != c.says {
			t.Errorf("%v, want %q", p, c.says)
		}
	}
}
