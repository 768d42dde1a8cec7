// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// TestR81_Timers compares the heap with a list that is searched from end to end.
func TestR81_Timers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const groups = 40
		var h timers
		h.grow(groups - 1)
		times := map[GroupID]time.Duration{}
		order := func() (ids []GroupID) {
			for id := range times {
				ids = append(ids, id)
			}
			slices.SortFunc(ids, func(a, b GroupID) int {
				return cmp.Or(cmp.Compare(times[a], times[b]), cmp.Compare(a, b))
			})
			return ids
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id, at := GroupID(rapid.IntRange(0, groups-1).Draw(t, "group")), time.Duration(rapid.IntRange(0, 20).Draw(t, "time"))
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0:
				h.stop(id)
				delete(times, id)
			case 1:
				var want []GroupID
				for _, id := range order() {
					if times[id] <= at {
						want = append(want, id)
					}
				}
				if got := h.expire(at); !slices.Equal(got, want) {
					t.Fatalf("at %d: %v, want %v", at, got, want)
				}
				for _, id := range want {
					delete(times, id)
				}
			default:
				h.arm(id, at)
				if old, ok := times[id]; !ok || at < old {
					times[id] = at
				}
			}
			first, ok := h.first()
			if ids := order(); ok != (len(ids) > 0) || ok && first != times[ids[0]] {
				t.Fatalf("first %v, %v of %v", first, ok, times)
			}
			for id := range GroupID(groups) {
				at, ok := h.deadline(id)
				if want, there := times[id]; ok != there || at != want {
					t.Fatalf("group %d: %v, %v, want %v, %v", id, at, ok, want, there)
				}
			}
		}
	})
}

// timerGroups returns a switch with n groups of members A, B and C, each on its own leg.
func timerGroups(t *testing.T, n int) *Switch {
	t.Helper()
	s := New(Limits{Groups: n})
	var out Output
	for i := range n {
		if err := s.Apply(0, PutGroup{groupOf(i, 3, 64<<10)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sendTo makes group i forward a packet that no receiver acknowledges.
func sendTo(t *testing.T, s *Switch, now time.Duration, i int) {
	t.Helper()
	var out Output
	s.Input(now, &Packet{
		Group: groupAddr(i), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.SendOnly, Payload: 8, AckReq: true, Verified: true, RetainBytes: minFrameBytes,
	}, &out)
	if len(out.Copies) != 2 {
		t.Fatalf("group %d: %d copies, drop %v", i, len(out.Copies), out.Drop)
	}
}

// TestR81_OnlyWhatIsDue: no call of Advance visits a group that waits for no deadline, or
// for a later one.
func TestR81_OnlyWhatIsDue(t *testing.T) {
	s := timerGroups(t, 1000)
	sendTo(t, s, 0, 500)
	sendTo(t, s, time.Millisecond, 501)
	// A visit to any other group would find a deadline that has passed, and end it.
	for i, g := range s.groups {
		if i != 500 {
			g.due.arm(livenessCheck, -time.Hour)
		}
	}
	at, ok := s.NextDeadline()
	if !ok || at != DefaultRepairTimeout {
		t.Fatalf("the first deadline is %v, %v", at, ok)
	}
	var out Output
	s.Advance(at, &out)
	if len(out.Copies) != 2 || out.Copies[0].Group != 500 {
		t.Errorf("group 500 asks nobody: %+v", out.Copies)
	}
	for i, g := range s.groups {
		if i != 500 && g.due.at(livenessCheck) != -time.Hour {
			t.Fatalf("group %d was looked at", i)
		}
	}
}

// TestR81_OrderOfGroups: groups are served in the order of their times and, at equal
// times, of their IDs, in whatever order they began to wait.
func TestR81_OrderOfGroups(t *testing.T) {
	s := timerGroups(t, 40)
	for _, i := range []int{9, 31, 2, 17, 5, 30} {
		sendTo(t, s, time.Microsecond, i)
	}
	for _, i := range []int{3, 1} {
		sendTo(t, s, 0, i)
	}
	var out Output
	s.Advance(time.Second, &out)
	var got []int
	for _, c := range out.Copies {
		if id := int(c.Group); len(got) == 0 || got[len(got)-1] != id {
			got = append(got, id)
		}
	}
	if want := []int{1, 3, 2, 5, 9, 17, 30, 31}; !slices.Equal(got, want) {
		t.Errorf("served in the order %v, want %v", got, want)
	}
}

// TestR81_DeletedGroup: a deleted group has no deadline, and a new group with its ID is
// served at the new group's times.
func TestR81_DeletedGroup(t *testing.T) {
	s := timerGroups(t, 3)
	sendTo(t, s, 0, 1)
	var out Output
	if err := s.Apply(0, DeleteGroup{1}, &out); err != nil {
		t.Fatal(err)
	}
	if at, ok := s.NextDeadline(); ok {
		t.Errorf("deadline %v without a group that waits", at)
	}
	if err := s.Apply(0, PutGroup{groupOf(1, 3, 64<<10)}, &out); err != nil {
		t.Fatal(err)
	}
	sendTo(t, s, time.Second, 1)
	if at, _ := s.NextDeadline(); at != time.Second+DefaultRepairTimeout {
		t.Errorf("deadline %v", at)
	}
}

// TestR81_ServedOncePerCall: a group with more copies to send than MaxResends allows
// waits for the next call, and does not keep other groups from being served in this one.
func TestR81_ServedOncePerCall(t *testing.T) {
	s := timerGroups(t, 3)
	for i := range 3 {
		sendTo(t, s, 0, i)
	}
	var out Output
	out.MaxResends = 3
	s.Advance(DefaultRepairTimeout, &out)
	groups := fmt.Sprint(out.Copies[0].Group, out.Copies[1].Group, out.Copies[2].Group)
	if len(out.Copies) != 3 || groups != "0 0 1" {
		t.Fatalf("copies of groups %s", groups)
	}
	if at, ok := s.NextDeadline(); !ok || at != DefaultRepairTimeout {
		t.Errorf("the rest is due at %v, %v", at, ok)
	}
	s.Advance(DefaultRepairTimeout, &out)
	if len(out.Copies) != 3 || out.Copies[0].Group != 1 {
		t.Errorf("the rest is %+v", out.Copies)
	}
}
