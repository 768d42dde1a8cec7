// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// sharing is a group of members that want to be the source. All PSNs begin at 0.
type sharing struct {
	t    *testing.T
	sw   *Switch
	out  Output
	now  time.Duration
	next []rocev2.PSN // the next PSN of each member's stream
}

func newSharing(t *testing.T, members int, turns time.Duration) *sharing {
	t.Helper()
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024, Policy: Evict}, TurnTime: turns}
	for i := range members {
		spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), QPN: rocev2.QPN(0x100 + i)}, Leg: LegID(i)})
	}
	s := &sharing{t: t, sw: New(Limits{}), now: time.Second, next: make([]rocev2.PSN, members)}
	if err := s.sw.Apply(s.now, PutGroup{spec}, &s.out); err != nil {
		t.Fatal(err)
	}
	return s
}

// asks makes a member send its next message, of one packet. It returns the RNR timer code
// of the answer, or 0 if the message is served.
func (s *sharing) asks(m MemberID) rocev2.RNRCode {
	s.t.Helper()
	p := Packet{Group: groupIP, Src: netip.AddrFrom4([4]byte{10, 0, 0, byte(m + 1)}), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: s.next[m], Payload: 10, Verified: true}
	s.sw.Input(s.now, &p, &s.out)
	checkInvariants(s.t, s.sw.group(0))
	if s.out.Drop == None {
		s.next[m]++
		return 0
	}
	i := slices.IndexFunc(s.out.Feedback, func(f Feedback) bool { return f.To == m })
	if i < 0 || s.out.Feedback[i].Syndrome.Kind() != rocev2.KindRNR || s.out.Feedback[i].PSN != p.PSN {
		s.t.Fatalf("member %d is told %+v, dropped %v", m, s.out.Feedback, s.out.Drop)
	}
	return s.out.Feedback[i].Syndrome.RNRCode()
}

// served makes all receivers of the source that GroupStatus names acknowledge all packets
// that have been sent to them.
func (s *sharing) served() {
	s.t.Helper()
	var st GroupStatus
	s.sw.Group(0).Snapshot(&st)
	total := rocev2.PSN(0)
	for m, n := range s.next {
		if MemberID(m) != st.Source {
			total += n
		}
	}
	for m := range s.next {
		if MemberID(m) == st.Source {
			continue
		}
		all := total + s.next[st.Source] - s.next[m] // the packets of all members but m
		p := Packet{Group: groupIP, Src: netip.AddrFrom4([4]byte{10, 0, 0, byte(m + 1)}), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, PSN: all.Prev(), Verified: true}
		s.sw.Input(s.now, &p, &s.out)
	}
}

// TestR78_TurnsDouble: each turn that the next member does not use doubles the length of
// the source's next one, at most six times. When the source changes, a turn has its
// normal length again.
func TestR78_TurnsDouble(t *testing.T) {
	s := newSharing(t, 3, 0)
	s.asks(0)
	for miss := range 9 {
		begin := s.now
		for s.asks(1) != turnSoon {
			if s.now += 5 * time.Millisecond; s.now-begin > 10*time.Second {
				t.Fatalf("after %d misses no turn ends", miss)
			}
		}
		if want := DefaultTurnTime << min(miss, maxMisses); s.now-begin != want {
			t.Errorf("after %d misses a turn ends in %v, want %v", miss, s.now-begin, want)
		}
		s.served()
		if s.asks(0) != turnSoon {
			t.Fatal("the source goes on")
		}
		s.now += turnReserved
		if s.asks(0) != 0 {
			t.Fatal("the source does not go on")
		}
	}
	for s.asks(1) != turnSoon {
		s.now += 5 * time.Millisecond
	}
	s.served()
	if s.asks(1) != 0 {
		t.Fatal("the next one is not served")
	}
	begin := s.now
	for s.asks(0) != turnSoon {
		s.now += 5 * time.Millisecond
	}
	if s.now-begin != DefaultTurnTime {
		t.Errorf("another source's turn ends in %v, want %v", s.now-begin, DefaultTurnTime)
	}
}

// TestR78_WhoIsNext: of several waiting members the one that has waited longest is next,
// whatever its MemberID. A removed member is never next.
func TestR78_WhoIsNext(t *testing.T) {
	for _, c := range []struct {
		order []MemberID // the order in which the members begin to wait
		gone  MemberID   // the member that is removed; 0: none
		want  []MemberID
	}{
		{[]MemberID{1, 2, 3}, 0, []MemberID{1, 2, 3}},
		{[]MemberID{3, 2, 1}, 0, []MemberID{3, 2, 1}},
		{[]MemberID{3, 1, 2}, 0, []MemberID{3, 1, 2}},
		{[]MemberID{3, 2, 1}, 2, []MemberID{3, 1}},
		{[]MemberID{2, 1, 3}, 1, []MemberID{2, 3}},
		{[]MemberID{1, 2, 3}, 1, []MemberID{2, 3}},
		{[]MemberID{3, 2, 1}, 3, []MemberID{2, 1}},
	} {
		const turns = 5 * time.Millisecond // less than turnReserved, so that a next member that does not ask delays the others
		s := newSharing(t, 4, turns)
		s.asks(0)
		for _, m := range c.order {
			s.asks(m)
			s.now += time.Millisecond
		}
		if c.gone != 0 {
			if err := s.sw.Apply(s.now, RemoveMember{0, c.gone}, &s.out); err != nil {
				t.Fatal(err)
			}
		}
		var got []MemberID
		for len(got) < len(c.want) {
			s.now += turns
			soon := 0
			for _, m := range c.want[len(got):] {
				if s.asks(m) == turnSoon {
					soon++
					got = append(got, m)
				}
			}
			if soon != 1 {
				t.Fatalf("%v, %d gone: %d are next at once, after %v", c.order, c.gone, soon, got)
			}
			s.served()
			if s.asks(got[len(got)-1]) != 0 {
				t.Fatalf("%v: %d is not served", c.order, got[len(got)-1])
			}
			for _, m := range c.want[len(got):] {
				s.asks(m) // the time of the new turn begins
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, %d gone: turns of %v, want %v", c.order, c.gone, got, c.want)
		}
	}
}

// leaves makes member 1 cease to be one, in one of three ways, when a message is not acknowledged.
func (s *sharing) leaves(how string) {
	s.t.Helper()
	var op Op = RemoveMember{0, 1}
	switch how {
	case "replaced":
		op = UpdateMembers{Remove: []MemberID{1}, Add: []AddMember{{Member: MemberSpec{MemberRecord: MemberRecord{IP: ipOf("B"), QPN: 0x999, RQPSN: 77}, Leg: 1}}}}
	case "evicted":
		p := Packet{Group: groupIP, Src: ipOf("B"), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeNAKOpErr, PSN: s.next[0].Prev(), Verified: true}
		if s.sw.Input(s.now, &p, &s.out); len(s.out.Events) != 1 || s.out.Events[0].Kind != MemberEvicted {
			s.t.Fatalf("events %+v", s.out.Events)
		}
		checkInvariants(s.t, s.sw.group(0))
		return
	}
	if err := s.sw.Apply(s.now, op, &s.out); err != nil {
		s.t.Fatal(err)
	}
	checkInvariants(s.t, s.sw.group(0))
}

// TestR78_NextLeaves: a turn that ends for a member that leaves ends for the member that has
// waited longest of the others, which has all the time to begin. The source goes on at once
// if no other waits, and a later member waits for the whole of TurnTime. A new member with
// the MemberID of the one that has left waits behind the others.
func TestR78_NextLeaves(t *testing.T) {
	for _, how := range []string{"removed", "replaced", "evicted"} {
		for _, others := range []bool{false, true} {
			s := newSharing(t, 4, 0)
			s.asks(0)
			s.asks(1)
			s.now += time.Millisecond
			if others {
				s.asks(3)
			}
			s.now += DefaultTurnTime - 2*time.Millisecond
			if others {
				s.asks(2)
			}
			if s.now += time.Millisecond; s.asks(1) != turnSoon {
				t.Fatalf("%s: the turn does not end", how)
			}
			if how != "evicted" {
				s.served()
				if s.asks(0) != turnSoon {
					t.Fatalf("%s: the source goes on", how)
				}
			}
			s.now += turnReserved - 1
			s.leaves(how)
			if !others && s.asks(0) != 0 {
				t.Errorf("%s: the turn stays reserved for the member", how)
			}
			if s.now++; others && how == "evicted" && s.asks(3) != turnSoon {
				t.Error("the next member is told to wait for long")
			}
			s.served()
			if !others {
				s.asks(0) // nobody can begin meanwhile
				for at := range DefaultTurnTime / (5 * time.Millisecond) {
					if s.asks(2) != turnRNRCode {
						t.Errorf("%s: the turn ends %v after the next member's first request", how, at*5*time.Millisecond)
					}
					s.now += 5 * time.Millisecond
				}
				if s.asks(2) != turnSoon {
					t.Errorf("%s: the turn of a source does not end", how)
				}
				continue
			}
			s.now += turnReserved / 4
			if how == "replaced" && s.asks(1) != turnRNRCode {
				t.Errorf("a new member is next in the place of another")
			}
			for _, m := range []MemberID{0, 2} {
				if s.asks(m) == 0 {
					t.Errorf("%s: member %d begins before the one that has waited longest", how, m)
				}
			}
			if s.asks(3) != 0 {
				t.Errorf("%s: the member that has waited longest does not begin", how)
			}
		}
	}
}

// TestR78_NextInATree: a group that gets its first leg to another switch forgets which member had the next turn, as
// the token machine has the order of waiting members from then on.
func TestR78_NextInATree(t *testing.T) {
	s := newSharing(t, 3, 0)
	s.asks(0)
	s.asks(1)
	s.now += DefaultTurnTime
	if s.asks(1) != turnSoon {
		t.Fatal("the turn does not end")
	}
	if err := s.sw.Apply(s.now, forwarded("E", 3, 7), &s.out); err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, s.sw.group(0))
}

// TestR78_SlowReceivers: until all receivers have acknowledged the end of a turn, the next
// turn stays reserved for a member that keeps asking, however long that takes. If that
// member asks no longer, the source goes on.
func TestR78_SlowReceivers(t *testing.T) {
	s := newSharing(t, 3, 0)
	s.asks(0)
	s.asks(1)
	s.now += DefaultTurnTime
	if s.asks(1) != turnSoon {
		t.Fatal("the turn does not end")
	}
	send := func() Reason {
		p := Packet{Group: groupIP, Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: s.next[0], Payload: 10, Verified: true}
		s.sw.Input(s.now, &p, &s.out)
		return s.out.Drop
	}
	for range 10 {
		if r := send(); r != TurnOver || len(s.out.Feedback)+len(s.out.Copies) > 0 {
			t.Fatalf("at %v: %v, %+v", s.now, r, s.out.Feedback)
		}
		s.now += turnReserved / 2
		s.asks(1)
	}
	s.now += turnReserved - 1
	if r := send(); r != TurnOver {
		t.Errorf("the turn is kept for too short a time: %v", r)
	}
	s.now++
	if r := send(); r != None {
		t.Errorf("the turn is kept for a member that has gone: %v", r)
	}
}
