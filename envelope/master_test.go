// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
	"time"
)

// TestOneSegmentAsks: while the switch's cookie or the epoch is unknown, the first segment
// of a long registration is sent alone. All follow once both are known.
func TestOneSegmentAsks(t *testing.T) {
	reg := sample(1, 100)
	for _, c := range []struct {
		name              string
		epoch, epochKnown uint64 // the epochs of the registration, and known to the switch
		first, challenged int    // number of segments: at first, and after the Challenge; 0: all
	}{
		{"new", 0, 0, 1, 0},
		{"known to the switch", 0, 4, 1, 0},
		{"with an epoch of its own", 9, 4, 1, 0},
		{"without an epoch that is left", 0, 1<<64 - 1, 1, 1},
	} {
		r := reg
		r.Epoch = c.epoch
		m, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth(), MTU: 300, Seed: 4}, r)
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		m.Start(0, &out)
		if len(out.Packets) != c.first {
			t.Errorf("%s: %d segments at first", c.name, len(out.Packets))
		}
		b, err := Append(nil, &Message{Header{
			Epoch: c.epochKnown, Instance: 5, Transaction: m.registerTx, Total: 1, Group: reg.Group, ReplyTo: switchAddr(reg),
		}, &Challenge{Request: TypeRegister, EpochKnown: c.epochKnown}}, testKeys, 7)
		if err != nil {
			t.Fatal(err)
		}
		m.Input(0, switchAddr(reg), b, &out)
		want := c.challenged
		if want == 0 {
			want = len(m.segments)
		}
		if len(m.segments) < 3 || len(out.Packets) != want {
			t.Errorf("%s: %d segments of %d after a Challenge, want %d", c.name, len(out.Packets), len(m.segments), want)
		}
	}
}

// TestMasterKnowsItsAddress: the registration names the host that answers are sent to.
func TestMasterKnowsItsAddress(t *testing.T) {
	reg := sample(1, 2)
	reg.Master = netip.AddrPort{}
	m, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth()}, reg)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Registration().Master; got != masterAddr {
		t.Errorf("the master is %v, want %v", got, masterAddr)
	}
}

// TestRestartedMemberConfirmsAnew: a member that an update names with other PSNs is another
// one: the old one has gone, and the new one confirms.
func TestRestartedMemberConfirmsAnew(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	reg := sample(1, 3)
	for _, rec := range reg.Members {
		w.addMember(t, rec, reg)
	}
	m := w.addMaster(t, "A", MasterConfig{Local: masterAddr, Seed: 3}, reg)
	var out Output
	m.Start(0, &out)
	w.do("A", &out)
	w.run(time.Second)
	next := m.Members()
	next[1].RQPSN += 5
	if err := m.Update(w.now, next, &out); err != nil {
		t.Fatal(err)
	}
	w.do("A", &out)
	w.events["A"] = nil
	w.fault = func(m Message, _ Packet) []time.Duration {
		if m.Type == TypeConfirm {
			return nil // lost
		}
		return []time.Duration{hop}
	}
	w.run(5 * hop)
	gone := 0
	for _, e := range w.events["A"] {
		if e.Kind == MemberGone && e.Member == next[1].Key() {
			gone++
		}
	}
	if waiting := m.Waiting(); gone != 1 || len(waiting) != 1 || waiting[0] != next[1].Key() {
		t.Errorf("%d members have gone, waiting for %v", gone, waiting)
	}
}
