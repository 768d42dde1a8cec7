// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// wrapGroup is a source and three receivers under spec's policy.
func wrapGroup(t *testing.T, spec GroupSpec) (*Switch, func(i int, psn rocev2.PSN) *Output) {
	t.Helper()
	s := New(Limits{})
	spec.IP, spec.QPN, spec.PathMTU = groupIP, groupQPN, 256
	for i := range 4 {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), QPN: 0x100}, Leg: LegID(i)})
	}
	out := new(Output)
	if err := s.Apply(0, PutGroup{spec}, out); err != nil {
		t.Fatal(err)
	}
	// Member 0 sends a message at psn; any other member i acknowledges it.
	return s, func(i int, psn rocev2.PSN) *Output {
		p := Packet{Group: groupIP, Src: spec.Members[i].IP, DestQP: groupQPN, PSN: psn, Verified: true}
		if i == 0 {
			p.Op, p.Payload, p.AckReq = rocev2.SendOnly, 8, true
		} else {
			p.Op, p.Syndrome = rocev2.Acknowledge, rocev2.SyndromeACK
		}
		s.Input(0, &p, out)
		checkInvariants(t, s.groups[0])
		return out
	}
}

// TestR61_TheDeadAreNotAhead: without dead_after, a receiver that never answers does not
// count for the quorum after the source has gone half round the PSN space.
func TestR61_TheDeadAreNotAhead(t *testing.T) {
	s, do := wrapGroup(t, GroupSpec{GroupParams: GroupParams{Policy: Quorum, Quorum: 2}})
	do(0, 0)
	do(1, 0)
	do(2, 0)
	evicted := rocev2.PSN(0)
	last := rocev2.PSN(0)
	for range 40 {
		psn := last.Add(1 << 20)
		s.skip(psn.Next(), 1<<20)
		out := do(1, psn)
		for _, e := range out.Events {
			if e.Kind != MemberEvicted || e.Member != 3 || e.Syndrome != Lagging || evicted != 0 {
				t.Fatalf("at %06x: event %+v", uint32(psn), e)
			}
			evicted = psn
		}
		if len(out.Feedback) != 0 {
			t.Fatalf("the source is told of %06x when one of the quorum of two has it: %+v", uint32(psn), out.Feedback)
		}
		if out = do(2, psn); len(out.Feedback) != 1 || out.Feedback[0].PSN != psn {
			t.Fatalf("no ACK of %06x, which the quorum has: %+v, drop %v", uint32(psn), out.Feedback, out.Drop)
		}
		last = psn
	}
	if evicted != 4<<20 {
		t.Errorf("the dead receiver was removed at %06x, want more than 2^22 behind", uint32(evicted))
	}
}

// TestR61_NothingFurtherAhead: a PSN too far ahead of A is not forwarded, under a policy that
// removes no receiver.
func TestR61_NothingFurtherAhead(t *testing.T) {
	_, do := wrapGroup(t, GroupSpec{})
	do(0, 0) // A is ffffff
	if out := do(0, maxAhead); out.Drop != PSNOutOfRange {
		t.Errorf("%d ahead of A: drop %v", maxAhead+1, out.Drop)
	}
	if out := do(0, maxAhead-1); out.Drop != None {
		t.Errorf("%d ahead of A: drop %v", maxAhead, out.Drop)
	}
	for i := 1; i < 4; i++ {
		do(i, maxAhead-1)
	}
	if out := do(0, maxAhead); out.Drop != None || len(out.Copies) != 3 {
		t.Errorf("when all is acknowledged: drop %v", out.Drop)
	}
}

// TestR62_TheSourceWentOn: B sends a NAK of 0, which C and D, the quorum, have. The
// source does not go back to 0, and goes on. The group waits for B as long as the NAK may
// still be on its way to the source, and then removes B, so that another member may be
// the source.
func TestR62_TheSourceWentOn(t *testing.T) {
	s, do := wrapGroup(t, GroupSpec{GroupParams: GroupParams{Policy: Quorum, Quorum: 1}})
	do(0, 0)
	do(0, 1)
	nak := Packet{Group: groupIP, Src: s.groups[0].members[1].ip.Addr(), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeNAKSequence, Verified: true}
	var out Output
	if s.Input(0, &nak, &out); len(out.Feedback) != 1 || out.Feedback[0].Syndrome != rocev2.SyndromeNAKSequence {
		t.Fatalf("NAK of what nobody has: %+v", out.Feedback)
	}
	do(2, 1)
	do(3, 1)
	for psn := rocev2.PSN(2); psn <= maxSourceFlight; psn++ {
		do(0, psn)
		if out := do(2, psn); len(out.Events) != 0 && psn != maxSourceFlight {
			t.Fatalf("at %06x: event %+v", uint32(psn), out.Events)
		} else if psn == maxSourceFlight && (len(out.Events) != 1 || out.Events[0].Member != 1 || out.Events[0].Syndrome != Stranded) {
			t.Fatalf("%d PSNs after what B asked for: events %+v", maxSourceFlight, out.Events)
		}
		do(3, psn)
	}
	first := Packet{Group: groupIP, Src: s.groups[0].members[3].ip.Addr(), DestQP: groupQPN, Op: rocev2.SendOnly, Payload: 8, Verified: true}
	if s.Input(0, &first, &out); out.Drop != None {
		t.Errorf("another source: drop %v", out.Drop)
	}
}

// TestR62_TwoAreLeftBehind: receivers that have become stranded by the same packet are
// removed together.
func TestR62_TwoAreLeftBehind(t *testing.T) {
	s, do := wrapGroup(t, GroupSpec{GroupParams: GroupParams{Policy: Quorum, Quorum: 1}})
	do(0, 0)
	do(0, 1)
	var out Output
	for i := 1; i < 3; i++ {
		s.Input(0, &Packet{Group: groupIP, Src: s.groups[0].members[i].ip.Addr(), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeNAKSequence, Verified: true}, &out)
	}
	for psn := rocev2.PSN(1); psn <= maxSourceFlight; psn++ {
		do(0, psn)
		out := do(3, psn)
		if want := map[bool]int{true: 2}[psn == maxSourceFlight]; len(out.Events) != want {
			t.Fatalf("at %06x: events %+v, want %d", uint32(psn), out.Events, want)
		}
	}
}
