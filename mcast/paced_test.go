// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// paced returns a repairRig whose store holds many frames. The port to B takes *room copies from the
// store in each call, and has room again 100 us later.
func paced(t *testing.T) (r *repairRig, room *int) {
	r, room = newRepairRig(t, func(s *GroupSpec) { s.Repair.Bytes = 1 << 20 }), new(int)
	r.out.PortRoom = func(_ GroupID, leg LegID) (int, time.Duration) {
		if leg == 1 {
			return *room, r.now + 100*time.Microsecond
		}
		return 1 << 10, 0
	}
	return r, room
}

// TestR45_RoundTripFromTheStore: a packet that has waited in the store for its leg is measured from
// when it went to that leg's port.
func TestR45_RoundTripFromTheStore(t *testing.T) {
	const ms = time.Millisecond
	r, room := paced(t)
	r.data(0, 0, 1000)
	r.feedback("B", rocev2.SyndromeACK, 0)
	r.feedback("C", rocev2.SyndromeACK, 0)
	*room = 1
	r.data(1, 0, 1000)
	r.data(2, 0, 1000)
	r.feedback("C", rocev2.SyndromeACK, 2)
	r.feedback("B", rocev2.SyndromeNAKSequence, 1)
	*room = 0
	r.feedback("B", rocev2.SyndromeACK, 1)
	r.data(3, 0, 1000) // it is measured, and B waits for its port
	r.feedback("C", rocev2.SyndromeACK, 3)
	if got := r.sw.groups[0].activity[1].recovery.state; got != waiting {
		t.Fatalf("B is %v", got)
	}
	r.now += 20 * ms
	*room = 2
	r.sw.Advance(r.now, &r.out)
	if !slices.ContainsFunc(r.out.Copies, func(c Copy) bool { return c.Leg == 1 && c.PSN == 3 }) {
		t.Fatalf("copies %v", r.out.Copies)
	}
	r.now += 3 * ms
	m := &r.sw.groups[0].activity[1].recovery
	m.rtt, m.rttVar = 0, 0
	r.feedback("B", rocev2.SyndromeACK, 3)
	if rtt, _ := roundTrips(r.sw); rtt != 3*ms {
		t.Errorf("round trip %v, want 3 ms from when it went to the port", rtt)
	}
}

// TestR45_PacedLeg: a receiver that is silent is probed while its leg waits for the port again and
// again, if its round trip is known. Otherwise what waits in the port's queue may be all that it is
// silent about.
func TestR45_PacedLeg(t *testing.T) {
	const step = 100 * time.Microsecond
	for _, measured := range []bool{true, false} {
		r, room := paced(t)
		*room = 1
		psn := rocev2.PSN(0)
		r.data(psn, 0, 1000)
		r.now += step
		for _, name := range []string{"B", "C"} {
			r.feedback(name, rocev2.SyndromeACK, psn)
		}
		if m := &r.sw.groups[0].activity[1].recovery; !measured {
			m.rtt, m.rttVar = 0, 0
		}
		for range 10 {
			psn++
			r.data(psn, 0, 1000)
			r.feedback("C", rocev2.SyndromeACK, psn)
		}
		r.feedback("B", rocev2.SyndromeNAKSequence, 1)
		from, again := r.now, time.Duration(0)
		for r.now-from < 8*time.Millisecond && again == 0 {
			r.now += step
			psn++
			r.data(psn, 0, 1000)
			sent := slices.Clone(r.out.Copies)
			r.feedback("C", rocev2.SyndromeACK, psn)
			r.sw.Advance(r.now, &r.out)
			for _, c := range append(sent, r.out.Copies...) {
				if c.Leg == 1 && c.PSN == 1 {
					again = r.now - from
				}
			}
		}
		if measured && (again < 4*time.Millisecond || again > 5*time.Millisecond) {
			t.Errorf("probed after %v, want 4 ms", again)
		}
		if !measured && again != 0 {
			t.Errorf("probed after %v, though nobody knows how long its port takes", again)
		}
	}
}
