// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestPacketsAreCountedOnce: a member's packet counts once in DataIn or FeedbackIn,
// whatever becomes of it, under one Reason if it is not forwarded, and with the copies
// and the feedback that it causes.
func TestPacketsAreCountedOnce(t *testing.T) {
	send := func(psn rocev2.PSN) Packet {
		return Packet{Src: ipOf("A"), Op: rocev2.SendOnly, PSN: psn, AckReq: true, Payload: 10}
	}
	ack := func(from string, psn rocev2.PSN) Packet {
		return Packet{Src: ipOf(from), Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, PSN: psn}
	}
	all := []Packet{send(0), ack("B", 100), ack("C", 200)} // B and C expect 100 and 200
	read := send(1)
	read.Op = rocev2.ReadRequest
	long := send(1)
	long.Payload = 5000
	for name, c := range map[string]struct {
		before []Packet
		p      Packet
		want   Counters // increase by packet p
		drop   Reason
	}{
		"new":                 {all, send(1), Counters{DataIn: 1, Copies: 2}, None},
		"new behind a gap":    {all, send(4), Counters{DataIn: 1, Copies: 2}, None},
		"a duplicate":         {all, send(0), Counters{DataIn: 1, FeedbackOut: 1}, DuplicateData},
		"a READ":              {all, read, Counters{DataIn: 1, FeedbackOut: 1}, NotMulticastable},
		"too long":            {all, long, Counters{DataIn: 1, FeedbackOut: 1}, BadLength},
		"beyond a READ":       {append(all[:3:3], read), send(2), Counters{}, NotMulticastable},
		"the READ again":      {append(all[:3:3], read), read, Counters{DataIn: 1, FeedbackOut: 1}, NotMulticastable},
		"another one instead": {append(all[:3:3], read), send(1), Counters{DataIn: 1, Copies: 2}, None},
		"an ACK":              {all[:1], ack("B", 100), Counters{FeedbackIn: 1}, None},
		"the last ACK":        {all[:2], ack("C", 200), Counters{FeedbackIn: 1, FeedbackOut: 1}, None},
		"an old ACK":          {all, ack("C", 200), Counters{FeedbackIn: 1}, FeedbackStale},
		"an ACK of nothing":   {all, ack("D", 200), Counters{}, NotMember},
	} {
		s, in := unsentGroup(t, 0)
		for _, p := range c.before {
			in(0, p)
		}
		var before, after GroupStatus
		s.Snapshot(0, &before)
		out := in(time.Millisecond, c.p)
		s.Snapshot(0, &after)
		b, a := before.Counters, after.Counters
		got := Counters{DataIn: a.DataIn - b.DataIn, Copies: a.Copies - b.Copies, FeedbackIn: a.FeedbackIn - b.FeedbackIn, FeedbackOut: a.FeedbackOut - b.FeedbackOut}
		if got != c.want || out.Drop != c.drop {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, out.Drop, c.want, c.drop)
		}
		for r := range NumReasons {
			want := uint64(0)
			if r == c.drop && r != None {
				want = 1
			}
			if n := a.Drops[r] - b.Drops[r]; n != want {
				t.Errorf("%s: %d more dropped as %v, want %d", name, n, r, want)
			}
		}
	}
}

// TestR34_WhoNeedsToSeeEveryPacket: a fast path may forward only while the switch need not
// see every packet.
func TestR34_WhoNeedsToSeeEveryPacket(t *testing.T) {
	send := Packet{Src: ipOf("A"), Op: rocev2.SendOnly, AckReq: true, Payload: 10, Frame: 1}
	read := send
	read.Op = rocev2.ReadRequest
	fatal := Packet{Src: ipOf("B"), Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeNAKOpErr, PSN: 100}
	for name, c := range map[string]struct {
		do   func(s *Switch, in func(time.Duration, Packet) *Output)
		want bool
	}{
		"nobody sends": {func(*Switch, func(time.Duration, Packet) *Output) {}, false},
		"a stream":     {func(_ *Switch, in func(time.Duration, Packet) *Output) { in(0, send) }, true},
		"a failed group": {func(_ *Switch, in func(time.Duration, Packet) *Output) {
			in(0, send)
			in(0, fatal)
		}, false},
		"a refused request": {func(_ *Switch, in func(time.Duration, Packet) *Output) {
			in(0, send)
			read.PSN = 1
			in(0, read)
		}, false},
		"a recovering leg": {func(s *Switch, in func(time.Duration, Packet) *Output) {
			if out := in(0, send); !s.Requeue(&out.Copies[0], time.Millisecond) {
				t.Fatal("the copy is lost")
			}
		}, false},
		"a member that joins": {func(s *Switch, in func(time.Duration, Packet) *Output) {
			in(0, send)
			op := AddMember{Member: MemberSpec{IP: ipOf("D"), QPN: 0x44, Leg: 3}}
			if err := s.Apply(0, op, &Output{}); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		s, in := unsentGroup(t, 100_000)
		c.do(s, in)
		if err := s.Forwarded(0, 3, 2, false); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestR34_CountsAndBounds: copies of a fast path count like copies of the switch, and a
// fast path may be as far ahead of A as a source may, but no further.
func TestR34_CountsAndBounds(t *testing.T) {
	s, in := unsentGroup(t, 0)
	in(0, Packet{Src: ipOf("A"), Op: rocev2.SendOnly, Payload: 10}) // acked is -1, nxt is 1
	if err := s.Forwarded(0, maxAhead, 1, false); err != nil {
		t.Error(err)
	}
	if err := s.Forwarded(0, maxAhead+1, 1, false); err == nil {
		t.Error("further ahead than a source may be")
	}
	var st GroupStatus
	s.Snapshot(0, &st)
	if c := st.Counters; c.DataIn != maxAhead || c.Copies != 2*maxAhead {
		t.Errorf("%d packets and %d copies, want %d and %d", c.DataIn, c.Copies, maxAhead, 2*maxAhead)
	}
}

// TestR51_WhatCannotBePutOff: a copy that cannot be deferred is lost. This holds without a
// store, for a leg or group that does not exist, and for a frame that is not retained.
func TestR51_WhatCannotBePutOff(t *testing.T) {
	send := Packet{Src: ipOf("A"), Op: rocev2.SendOnly, AckReq: true, Payload: 10, Frame: 1}
	for name, c := range map[string]struct {
		bytes  int64
		change func(c *Copy)
		want   bool
	}{
		"kept":              {100_000, func(*Copy) {}, true},
		"without a store":   {0, func(*Copy) {}, false},
		"of another group":  {100_000, func(c *Copy) { c.Group = 7 }, false},
		"for another leg":   {100_000, func(c *Copy) { c.Leg = 3 }, false},
		"for its own leg":   {100_000, func(c *Copy) { c.Leg, c.PSN = 0, 0 }, false},
		"of another packet": {100_000, func(c *Copy) { c.PSN = c.PSN.Next() }, false},
	} {
		s, in := unsentGroup(t, c.bytes)
		x := in(0, send).Copies[0]
		c.change(&x)
		if got := s.Requeue(&x, time.Millisecond); got != c.want {
			t.Errorf("%s: put off: %v, want %v", name, got, c.want)
		}
		var st GroupStatus
		s.Snapshot(0, &st)
		left := uint64(1) // of two copies, one is taken back
		if x.Group != 0 || x.Leg == 3 {
			left = 2 // the copy is none of this group's
		}
		if st.Counters.Copies != left {
			t.Errorf("%s: %d copies count as sent, want %d", name, st.Counters.Copies, left)
		}
	}
}

// TestR34_MessagesThatPassedUnseen: the rest of a WRITE that a fast path has begun is not
// measured by the last FIRST that the switch has seen.
func TestR34_MessagesThatPassedUnseen(t *testing.T) {
	s, in := unsentGroup(t, 0)
	in(0, Packet{Src: ipOf("A"), Op: rocev2.WriteFirst, Payload: 1024, DMALen: 2048})
	if err := s.Forwarded(0, 5, 1, true); err != nil {
		t.Fatal(err)
	}
	if out := in(0, Packet{Src: ipOf("A"), Op: rocev2.WriteMiddle, Payload: 1024, PSN: 5}); out.Drop != None || len(out.Copies) != 2 {
		t.Errorf("the middle of another message: %v, %+v", out.Drop, out.Copies)
	}
}
