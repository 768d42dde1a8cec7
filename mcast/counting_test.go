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
		"a duplicate":         {all, send(0), Counters{DataIn: 1, FeedbackOut: 1, Repeated: 1}, DuplicateData},
		"sent again":          {append(all[:3:3], send(1), send(2)), send(1), Counters{DataIn: 1, Copies: 2, Repeated: 1, RepeatedBytes: 10}, None},
		"lost, sent again":    {append(all[:3:3], send(2)), send(1), Counters{DataIn: 1, Copies: 2, Repeated: 1}, None},
		"not lost, beside it": {append(all[:3:3], send(2)), send(2), Counters{DataIn: 1, Copies: 2, Repeated: 1, RepeatedBytes: 10}, None},
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
		s.Group(0).Snapshot(&before)
		out := in(time.Millisecond, c.p)
		s.Group(0).Snapshot(&after)
		b, a := before.Counters, after.Counters
		got := Counters{DataIn: a.DataIn - b.DataIn, Copies: a.Copies - b.Copies, FeedbackIn: a.FeedbackIn - b.FeedbackIn, FeedbackOut: a.FeedbackOut - b.FeedbackOut,
			Repeated: a.Repeated - b.Repeated, RepeatedBytes: a.RepeatedBytes - b.RepeatedBytes}
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
		s.Group(0).Snapshot(&st)
		left := uint64(1) // of two copies, one is taken back
		if x.Group != 0 || x.Leg == 3 {
			left = 2 // the copy is none of this group's
		}
		if st.Counters.Copies != left {
			t.Errorf("%s: %d copies count as sent, want %d", name, st.Counters.Copies, left)
		}
	}
}
