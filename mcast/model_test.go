// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Transcripts that package model has written, and transcripts of its findings.

func TestR18_NeighbourAnswersOneSource(t *testing.T) { runTranscript(t) }

func TestModelTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/Model_*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runTranscriptFile(t, file) })
	}
}

// TestR52_FreshReceiverBehindAQuorum: the MSN of a receiver behind a quorum is compared
// with the number of messages up to the PSN that it acknowledges, not up to A, which is
// ahead of it. The receiver expects the registered PSN, and stays.
func TestR52_FreshReceiverBehindAQuorum(t *testing.T) {
	s := New(Limits{})
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256, Policy: Quorum, Quorum: 1}, PSNProbe: time.Millisecond}
	for i, name := range []string{"A", "B", "C"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x100 + i), SQPSN: 0xFFFFFF, RQPSN: 0xFFFFFF}, Leg: LegID(i)})
	}
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	in := func(p Packet) {
		t.Helper()
		p.Group, p.DestQP, p.Verified = groupIP, groupQPN, true
		if s.Input(0, &p, &out); len(out.Events) > 0 && out.Events[0].Kind != SourceChanged {
			t.Fatalf("%+v after PSN %06x of %v", out.Events, uint32(p.PSN), p.Src)
		}
	}
	ack := func(name string, psn rocev2.PSN, msn rocev2.MSN) {
		t.Helper()
		in(Packet{Src: ipOf(name), Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, PSN: psn, MSN: msn})
	}
	s.Advance(0, &out)
	for _, name := range []string{"B", "C"} {
		ack(name, 0xFFFFFF, 0) // the answer to the probe, of an rdma_rxe that has accepted nothing
	}
	for psn := rocev2.PSN(0xFFFFFF); psn != 1; psn = psn.Next() {
		in(Packet{Src: ipOf("A"), Op: rocev2.SendOnly, Payload: 8, AckReq: true, PSN: psn})
	}
	ack("B", 0xFFFFFF, 1)
	ack("B", 0, 2)
	ack("C", 0xFFFFFF, 1)
	ack("C", 0, 2)
	if g := s.groups[0]; !g.members[2].live || g.acks[2].acked != 0 {
		t.Errorf("C: live %v, has %06x", g.members[2].live, uint32(g.acks[2].acked))
	}
}

// TestR52_LateFeedbackVerifiesNothing: neither feedback that comes before the first probe
// is sent nor a NAK verifies a receiver. No receiver with the registered numbers answers
// a probe by a NAK. Either may belong to an earlier registration, with more of its
// packets on the way.
func TestR52_LateFeedbackVerifiesNothing(t *testing.T) {
	s := New(Limits{})
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256}, PSNProbe: time.Millisecond}
	for i, name := range []string{"A", "B", "C"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x100 + i), RQPSN: 5}, Leg: LegID(i)})
	}
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	from := func(syn rocev2.Syndrome, psn rocev2.PSN, pending bool) {
		t.Helper()
		s.Input(0, &Packet{
			Group: groupIP, DestQP: groupQPN, Src: ipOf("C"), Op: rocev2.Acknowledge, Syndrome: syn, PSN: psn, MSN: 3, Verified: true,
		}, &out)
		if got := s.groups[0].numbering.checks[2].pending; got != pending {
			t.Errorf("after syndrome %#x, PSN %06x: unverified %v", uint8(syn), uint32(psn), got)
		}
	}
	from(rocev2.SyndromeNAKSequence, 5, true)
	from(rocev2.SyndromeACK, 4, true)
	s.Advance(0, &out)
	from(rocev2.SyndromeNAKSequence, 5, true)
	from(rocev2.SyndromeACK, 4, false)
}
