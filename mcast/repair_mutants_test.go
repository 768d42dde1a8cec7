// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Corners of local repair that no other test covers: each of these tests is the only one
// that kills a certain mutant.

// repairRig is a source A with receivers B and C, all with the same PSNs, and a store of
// 16384 bytes.
type repairRig struct {
	tb  *testing.T
	sw  *Switch
	out Output
	now time.Duration
}

func newRepairRig(t *testing.T, change func(*GroupSpec)) *repairRig {
	t.Helper()
	r := &repairRig{tb: t, sw: New(Limits{})}
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, Repair: RepairSpec{Bytes: 16384, Timeout: 4 * time.Millisecond, Tries: 3}}
	for i, name := range []string{"A", "B", "C"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: 0x11}, Leg: LegID(i)})
	}
	if change != nil {
		change(&spec)
	}
	if err := r.sw.Apply(0, PutGroup{spec}, &r.out); err != nil {
		t.Fatal(err)
	}
	return r
}

// data gives the switch a packet of the source. Its frame takes the given number of bytes,
// and its handle is 100*round + PSN.
func (r *repairRig) data(psn rocev2.PSN, round Handle, bytes uint32) {
	r.sw.Input(r.now, &Packet{
		Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendOnly, Payload: 8,
		AckReq: true, PSN: psn, Frame: 100*round + Handle(psn), RetainBytes: bytes,
	}, &r.out)
}

func (r *repairRig) feedback(from string, syn rocev2.Syndrome, psn rocev2.PSN) {
	r.sw.Input(r.now, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(from), Verified: true, Op: rocev2.Acknowledge, PSN: psn, Syndrome: syn}, &r.out)
}

func (r *repairRig) released(want ...Handle) {
	r.tb.Helper()
	got := slices.Clone(r.out.Freed)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.tb.Errorf("released %v, want %v", got, want)
	}
}

// TestDeletedGroupKeepsNothing (R42): a deleted group frees its retained frames.
func TestDeletedGroupKeepsNothing(t *testing.T) {
	r := newRepairRig(t, nil)
	r.data(0, 0, 1000)
	r.data(1, 0, 1000)
	if err := r.sw.Apply(r.now, DeleteGroup{0}, &r.out); err != nil {
		t.Fatal(err)
	}
	r.released(0, 1)
	if used := r.sw.repair.used; used != 0 {
		t.Errorf("%d bytes of all groups' budget are still taken", used)
	}
}

// TestNothingIsGivenUpForWhatCannotFit (R42): a frame that would not fit into an empty
// store evicts no frame that is retained for a receiver behind the quorum.
func TestNothingIsGivenUpForWhatCannotFit(t *testing.T) {
	r := newRepairRig(t, func(s *GroupSpec) { s.Policy, s.Quorum = Quorum, 1 })
	r.data(0, 0, 2000)
	r.data(1, 0, 2000)
	r.feedback("B", rocev2.SyndromeACK, 1)
	r.data(2, 0, 16385)
	r.released()
	if r.out.Retained {
		t.Error("more is kept than the budget")
	}
	r.feedback("C", rocev2.SyndromeNAKSequence, 0)
	if got := sentTo(&r.out, 2); !slices.Equal(got, []rocev2.PSN{0, 1}) {
		t.Errorf("C gets %v, feedback to A %v, events %v", got, r.out.Feedback, r.out.Events)
	}
}

// TestNewerFrameThatDoesNotFitLeavesAHole (R43): a packet that comes again with a frame
// too large to be retained leaves a hole. A NAK of a PSN before the hole is not served
// from the store.
func TestNewerFrameThatDoesNotFitLeavesAHole(t *testing.T) {
	r := newRepairRig(t, nil)
	for psn := range rocev2.PSN(3) {
		r.data(psn, 0, 1000)
	}
	r.data(1, 1, 15000)
	r.released(1)
	r.feedback("B", rocev2.SyndromeNAKSequence, 0)
	if len(r.out.Copies) > 0 || len(r.out.Feedback) != 1 || r.out.Feedback[0].Syndrome != rocev2.SyndromeNAKSequence || r.out.Feedback[0].PSN != 0 {
		t.Errorf("copies %v, feedback %v; want NAK 0 to the source", r.out.Copies, r.out.Feedback)
	}
}

// TestRepairToAnotherSwitchIsAsItCame (R44, R24): a frame that is resent to another
// switch is unchanged, also if it is rewritten for a member.
func TestRepairToAnotherSwitchIsAsItCame(t *testing.T) {
	group := Window{Base: 0x1000, Len: 0x1000, RKey: 7}
	r := newRepairRig(t, func(s *GroupSpec) {
		s.Window = group
		s.Legs[2] = LegSpec{Kind: Forwarded, Neighbor: 1}
		for i := range s.Members {
			s.Members[i].Window = Window{Base: uint64(i+1) << 32, Len: 0x1000, RKey: uint32(70 + i)}
		}
	})
	joinTree(t, r.sw, 0)
	write := Packet{
		Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.WriteOnly, Payload: 8, AckReq: true,
		VA: 0x1010, RKey: 7, DMALen: 8, Frame: 5, RetainBytes: 1000,
	}
	r.sw.Input(0, &write, &r.out)
	for leg, nak := range []Packet{
		1: {Src: ipOf("B")},
		2: {Src: ipOf("A"), Neighbor: 1, MSN: 1}, // the next switch answers with the source's address
	} {
		if leg == 0 {
			continue
		}
		nak.Group, nak.DestQP, nak.Verified, nak.Op, nak.Syndrome = groupIP, groupQPN, true, rocev2.Acknowledge, rocev2.SyndromeNAKSequence
		r.sw.Input(0, &nak, &r.out)
		want := Copy{Leg: LegID(leg), Frame: 5}
		if leg == 1 {
			want.Flags, want.VA, want.RKey = SetRETH, 2<<32+0x10, 71
		}
		if !slices.Equal(r.out.Copies, []Copy{want}) {
			t.Errorf("leg %d is sent %+v, want %+v", leg, r.out.Copies, want)
		}
	}
}

// TestWhoOwesNothingIsNotAsked (R45): a receiver that got no AckReq owes no ACK, and is
// not probed.
func TestWhoOwesNothingIsNotAsked(t *testing.T) {
	r := newRepairRig(t, nil)
	r.data(0, 0, 1000)
	r.sw.Input(0, &Packet{
		Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Verified: true, Op: rocev2.SendFirst, Payload: 1024, PSN: 1, Frame: 1, RetainBytes: 1000,
	}, &r.out)
	r.feedback("B", rocev2.SyndromeACK, 0)
	r.feedback("C", rocev2.SyndromeACK, 0)
	for n := 0; n < 10; n++ {
		at, ok := r.sw.NextDeadline()
		if !ok {
			return
		}
		r.now = at
		if r.sw.Advance(at, &r.out); len(r.out.Copies) > 0 {
			t.Fatalf("at %v: %v", at, r.out.Copies)
		}
	}
	t.Error("the switch goes on looking for something to do")
}

// TestSourceIsNotAskedForWhatItIsAboutToPass (R47): the source has gone back to a loss,
// and will repeat the next lost packet as well. No NAK of that packet goes to the source
// in the name of the receivers that wait for it.
func TestSourceIsNotAskedForWhatItIsAboutToPass(t *testing.T) {
	r := newRepairRig(t, nil)
	for _, psn := range []rocev2.PSN{0, 2, 4} { // 1 and 3 are lost before the switch
		r.data(psn, 0, 1000)
	}
	for i, name := range []string{"B", "C"} {
		r.feedback(name, rocev2.SyndromeNAKSequence, 1)
		if i == 1 && (len(r.out.Feedback) != 2 || r.out.Feedback[1].PSN != 1 || r.out.Feedback[1].Syndrome != rocev2.SyndromeNAKSequence) {
			t.Fatalf("feedback %v, want ACK 0 and NAK 1", r.out.Feedback)
		}
	}
	r.data(1, 1, 1000)
	for leg := range LegID(2) {
		if got := sentTo(&r.out, leg+1); !slices.Equal(got, []rocev2.PSN{1, 2}) {
			t.Fatalf("leg %d is sent %v", leg+1, got)
		}
	}
	r.feedback("B", rocev2.SyndromeACK, 2)
	r.feedback("C", rocev2.SyndromeACK, 2)
	if len(r.out.Feedback) != 1 || r.out.Feedback[0].Syndrome != rocev2.SyndromeACK || r.out.Feedback[0].PSN != 2 {
		t.Errorf("feedback %v, want ACK 2 alone", r.out.Feedback)
	}
	r.data(2, 1, 1000)
	r.data(3, 1, 1000)
	for leg := range LegID(2) {
		if got := sentTo(&r.out, leg+1); !slices.Equal(got, []rocev2.PSN{3, 4}) {
			t.Errorf("leg %d is sent %v", leg+1, got)
		}
	}
}

// TestWhoIsBehindTheQuorumGetsWhatComesAgain (R48): a receiver behind the quorum may have
// packets that it did not acknowledge. If no frame of them is retained, only a packet that
// the source repeats can show it.
func TestWhoIsBehindTheQuorumGetsWhatComesAgain(t *testing.T) {
	r := newRepairRig(t, func(s *GroupSpec) { s.Policy, s.Quorum = Quorum, 1 })
	r.data(0, 0, 8000)
	r.data(1, 0, 8000)
	r.feedback("C", rocev2.SyndromeACK, 1)
	r.data(2, 0, 16000) // evicts both frames
	r.released(0, 1)
	r.data(2, 1, 16000)
	if got := sentTo(&r.out, 1); !slices.Equal(got, []rocev2.PSN{2}) {
		t.Errorf("B is sent %v", got)
	}
	r.feedback("B", rocev2.SyndromeACK, 2)
	if len(r.out.Feedback) != 1 || r.out.Feedback[0].PSN != 2 {
		t.Errorf("feedback %v, want ACK 2", r.out.Feedback)
	}
}
