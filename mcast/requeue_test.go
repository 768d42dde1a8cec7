// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// unsentGroup is a source A with receivers B and C. All send from PSN 0 on; B expects 100
// and C expects 200.
func unsentGroup(t *testing.T, bytes int64) (*Switch, func(now time.Duration, p Packet) *Output) {
	t.Helper()
	s := New(Limits{})
	spec := goodSpec()
	spec.ID, spec.Policy, spec.Quorum, spec.Window, spec.Legs, spec.Members = 0, Strict, 0, Window{}, nil, nil
	spec.Repair = RepairSpec{Bytes: bytes, Timeout: 4 * time.Millisecond, Tries: 3}
	for i, name := range []string{"A", "B", "C"} {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(name), QPN: rocev2.QPN(0x11 + i), RQPSN: rocev2.PSN(100 * i)}, Leg: LegID(i)})
	}
	out := &Output{}
	if err := s.Apply(0, PutGroup{spec}, out); err != nil {
		t.Fatal(err)
	}
	return s, func(now time.Duration, p Packet) *Output {
		t.Helper()
		p.Group, p.DestQP, p.Verified, p.RetainBytes = spec.IP, spec.QPN, true, 1000
		s.Input(now, &p, out)
		return out
	}
}

// sentTo returns the PSNs of the copies for leg.
func sentTo(out *Output, leg LegID) (psns []rocev2.PSN) {
	for _, c := range out.Copies {
		if c.Leg == leg {
			psns = append(psns, c.PSN)
		}
	}
	return psns
}

// TestR51_TheStoreIsTheRestOfTheQueue: copies that a full queue does not take wait in the
// store, and go out in order when there is room. Other legs and the source are not
// affected.
func TestR51_TheStoreIsTheRestOfTheQueue(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	data := func(now time.Duration, psn rocev2.PSN) *Output {
		return in(now, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, AckReq: true, Frame: Handle(psn)})
	}
	out := data(0, 0)
	if !s.Requeue(&out.Copies[0], time.Millisecond) {
		t.Fatal("the copy of a kept frame is lost")
	}
	for psn := rocev2.PSN(1); psn < 4; psn++ { // B, leg 1, gets nothing beyond its cursor
		if out = data(0, psn); len(sentTo(out, 1)) != 0 || len(sentTo(out, 2)) != 1 {
			t.Fatalf("PSN %d: %v", psn, out.Copies)
		}
	}
	if at, ok := s.NextDeadline(); !ok || at > time.Millisecond {
		t.Fatalf("next deadline %v, %v", at, ok)
	}
	s.Advance(time.Millisecond, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{100, 101, 102, 103}) {
		t.Fatalf("sent %v when there was room", got)
	}
	// Half of the copies fit this time. The rest is sent again from there on.
	for _, c := range out.Copies[2:] {
		if !s.Requeue(&c, 2*time.Millisecond) {
			t.Fatal("lost")
		}
	}
	s.Advance(2*time.Millisecond, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{102, 103}) {
		t.Fatalf("sent %v when there was room again", got)
	}
	if out = data(2*time.Millisecond, 4); len(out.Copies) != 2 {
		t.Fatalf("not in line again: %v", out.Copies)
	}
	in(2*time.Millisecond, Packet{Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 104, Syndrome: rocev2.SyndromeACK})
	out = in(2*time.Millisecond, Packet{Src: ipOf("C"), Op: rocev2.Acknowledge, PSN: 204, Syndrome: rocev2.SyndromeACK})
	if len(out.Feedback) != 1 || out.Feedback[0].PSN != 4 || len(out.Freed) != 5 {
		t.Fatalf("in the end %+v", *out)
	}
}

// TestR51_NothingIsPutOffThatIsNotKept: the copy of a frame that is not retained is lost
// as on a link.
func TestR51_NothingIsPutOffThatIsNotKept(t *testing.T) {
	s, in := unsentGroup(t, 0)
	out := in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly})
	if s.Requeue(&out.Copies[0], time.Millisecond) {
		t.Error("put off without a store")
	}
	s, in = unsentGroup(t, 1500) // room for one frame
	in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly})
	out = in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: 1})
	if s.Requeue(&out.Copies[0], time.Millisecond) {
		t.Error("put off what the store has no room for")
	}
	if out = in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: 2}); len(out.Copies) != 2 {
		t.Errorf("the leg does not get the data that follows: %v", out.Copies)
	}
}

// TestR51_QuestionPutOff: a probe that the port did not take is sent later.
func TestR51_QuestionPutOff(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	out := in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, AckReq: true})
	in(0, Packet{Src: ipOf("C"), Op: rocev2.Acknowledge, PSN: 200, Syndrome: rocev2.SyndromeACK})
	now := time.Second
	s.Advance(now, out)
	if got := sentTo(out, 1); len(got) != 1 || !s.Requeue(&out.Copies[0], now+time.Millisecond) {
		t.Fatalf("asked with %v", got)
	}
	s.Advance(now+time.Millisecond, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{100}) {
		t.Fatalf("asked with %v when there was room", got)
	}
}

// TestR51_QuestionOfWhatALegHas: the packet that only asks a leg, which has it, and that its port did not
// take, is lost: the leg stays in sync, and is not sent that packet as if it lacked it.
func TestR51_QuestionOfWhatALegHas(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	out := in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, AckReq: true})
	toB := out.Copies[0]
	in(0, Packet{Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 100, Syndrome: rocev2.SyndromeACK})
	if s.Requeue(&toB, time.Millisecond) {
		t.Error("the question is put off as a repair is")
	}
	if out = in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: 1}); !slices.Equal(sentTo(out, 1), []rocev2.PSN{101}) {
		t.Errorf("B is sent %v", sentTo(out, 1))
	}
}

// TestR51_NakBelowWhatWaits: a NAK of a PSN below the deferred copy is served at once,
// and the deferred copy goes out after the resent ones.
func TestR51_NakBelowWhatWaits(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	var out *Output
	for psn := rocev2.PSN(0); psn < 4; psn++ {
		out = in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, Frame: Handle(psn)})
	}
	if !s.Requeue(&out.Copies[0], time.Millisecond) {
		t.Fatal("lost")
	}
	out = in(0, Packet{Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 101, Syndrome: rocev2.SyndromeNAKSequence})
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{101, 102, 103}) {
		t.Fatalf("NAK of 101 is answered with %v", got)
	}
}

// TestR42_Deleted: a deleted group frees its frames.
func TestR42_Deleted(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, Frame: 7})
	var out Output
	if err := s.Apply(0, DeleteGroup{0}, &out); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out.Freed, []Handle{7}) || s.repair.used != 0 {
		t.Errorf("released %v, %d bytes are still counted", out.Freed, s.repair.used)
	}
}

// TestR51_PutOffIsNotOnItsWay: a copy that a full queue did not take was not sent. An ACK
// beyond the probe shows that the other packets are on their way, but not that copy.
func TestR51_PutOffIsNotOnItsWay(t *testing.T) {
	s, in := unsentGroup(t, 100_000)
	data := func(psn rocev2.PSN) *Output {
		return in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, AckReq: true, Frame: Handle(psn)})
	}
	for psn := range rocev2.PSN(4) {
		data(psn)
	}
	out := data(4)
	if !s.Requeue(&out.Copies[0], time.Millisecond) {
		t.Fatal("lost")
	}
	data(5)
	out.MaxResends = -1
	s.Advance(time.Millisecond, out)
	s.Advance(5*time.Millisecond, out) // B has sent nothing
	out.MaxResends = 1
	s.Advance(5*time.Millisecond, out)
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{100}) {
		t.Fatalf("B is asked with %v", got)
	}
	out = in(6*time.Millisecond, Packet{Src: ipOf("B"), Op: rocev2.Acknowledge, PSN: 103, Syndrome: rocev2.SyndromeACK})
	if got := sentTo(out, 1); !slices.Equal(got, []rocev2.PSN{104}) {
		t.Errorf("B, which has 103, is sent %v", got)
	}
}
