// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/blame"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// lookOnce has lookInterval pass, and the worker look at what is due.
func (b *bench) lookOnce() {
	b.w.now += lookInterval
	b.w.lookAtDelays()
}

// delaysOf returns what the control loop is told of delays.
func (b *bench) delaysOf() (all []GroupDelay) {
	for id, ok := b.w.delays.changed.next(); ok; id, ok = b.w.delays.changed.next() {
		all = append(all, GroupDelay{id, b.w.delays.groups[id].Delay, b.w.delays.groups[id].blamed()})
	}
	return all
}

// notReady has host 3 of a group take a packet 200 ms after the others, which it has refused with an RNR NAK
// before, and the worker look.
func (b *bench) notReady(psn rocev2.PSN) {
	b.one(psn, 2, nil)
	b.say(3, psn, rocev2.SyndromeRNR|1)
	b.lookOnce()
	b.say(3, psn, rocev2.SyndromeACK)
	b.unstage()
}

// causes returns why the members of group 0 cost it time, by member.
func (b *bench) causes() map[mcast.MemberID]blame.Cause {
	of := make(map[mcast.MemberID]blame.Cause)
	for d, i := b.w.delays.groups[0].blamed(), 0; i < d.Count; i++ {
		of[d.Members[i].Member] = d.Members[i].Cause
	}
	return of
}

// A member that costs its group time is named with the cause when two judgements have found it, and
// no more when two have not. A group is looked at until that is over, and what was read is forgotten.
func TestLooksNameTheMemberThatCosts(t *testing.T) {
	b := newBench(t, 4)
	w := b.w
	psn, looks := rocev2.PSN(0), 0
	for ; len(b.causes()) == 0 && looks < 100; looks++ {
		b.notReady(psn)
		psn = psn.Next()
	}
	if got := b.causes(); len(got) != 1 || got[3] != blame.NotReady {
		t.Fatalf("after %d looks: %v", looks, got)
	}
	if least := int((leastJudged + readInterval) / lookInterval); looks <= least || looks > least+2 {
		t.Errorf("it is named after %d looks, want little more than %d", looks, least)
	}
	v := &w.delays.groups[0].history.Members[0]
	if v.RNRNAKs < 10 || v.Waited < v.Over*9/10 || v.Over < leastJudged {
		t.Errorf("%+v", v)
	}
	if got := b.delaysOf(); len(got) != 1 || got[0].Count != 1 || got[0].Kind != NoDelay {
		t.Errorf("the control loop is told %+v", got)
	}
	for looks = 0; w.delays.count != 0 && looks < 100; looks++ {
		b.lookOnce()
	}
	if got := b.delaysOf(); len(got) != 1 || got[0].Count != 0 || looks == 100 {
		t.Errorf("after %d looks without data: %+v", looks, got)
	}
	if d := &w.delays.groups[0]; d.history != nil || len(w.delays.spare) != 1 {
		t.Errorf("the readings are not given back: %+v", d)
	}
}

// Of a group in which all is well nobody is named, though one member is the last each time.
func TestLooksNameNobodyWhoIsLast(t *testing.T) {
	b := newBench(t, 4)
	for psn := range rocev2.PSN(100) {
		b.one(psn, 2, nil)
		b.w.now += time.Millisecond
		b.say(3, psn, rocev2.SyndromeACK)
		b.unstage()
		b.lookOnce()
		if got := b.causes(); len(got) > 0 {
			t.Fatalf("%v", got)
		}
	}
}

// A member that is removed costs its group nothing any more.
func TestLooksForgetAMemberThatHasGone(t *testing.T) {
	b := newBench(t, 4)
	w := b.w
	psn := rocev2.PSN(0)
	for range 20 {
		b.notReady(psn)
		psn = psn.Next()
	}
	if got := b.causes(); got[3] != blame.NotReady {
		t.Fatalf("%v", got)
	}
	now := w.now
	w.removeMember(0, 3)
	w.now = now // removeMember has read the clock
	for range readInterval / lookInterval {
		b.lookOnce()
	}
	if got := b.causes(); len(got) != 0 {
		t.Errorf("when the member has gone: %v", got)
	}
}

// A member that stands still for a second stalls its group: it is named, and another one when it
// has gone. A new group under the same number begins without delay.
func TestLooksNameTheStalledMember(t *testing.T) {
	b := newBench(t, 4)
	w := b.w
	b.one(0, 1, nil) // hosts 2 and 3 say nothing
	for range api.StallTime * time.Second / lookInterval {
		b.lookOnce()
	}
	stalled := Delay{Kind: Stalled, Member: 2, Legs: 2, Since: w.now - api.StallTime*time.Second}
	if got := b.delaysOf(); len(got) != 1 || got[0].Delay != stalled {
		t.Fatalf("%+v, want %+v", got, stalled)
	}
	b.say(2, 0, rocev2.SyndromeACK)
	b.lookOnce()
	stalled.Member, stalled.Legs = 3, 1
	if got := b.delaysOf(); len(got) != 1 || got[0].Delay != stalled {
		t.Errorf("when host 2 has acknowledged: %+v, want %+v", got, stalled)
	}
	now := w.now
	if err := w.putGroup(b.spec, w.groups[0]); err != nil {
		t.Fatal(err)
	}
	w.now = now // putGroup has read the clock
	if d := w.delays.groups[0].Delay; d != (Delay{}) {
		t.Errorf("a new group has %+v", d)
	}
	b.lookOnce()
	if got := b.delaysOf(); len(got) > 0 || w.delays.count != 0 {
		t.Errorf("a new group: %+v, %d looks are due", got, w.delays.count)
	}
}

// putMore puts n groups like b's own: group i has the address i below b's.
func (b *bench) putMore(t testing.TB, n int) {
	for i := 1; i <= n; i++ {
		spec, table := b.spec, b.w.groups[0]
		spec.ID = mcast.GroupID(i)
		spec.IP = netip.AddrFrom4([4]byte{10, byte(78 + i>>16), byte(i >> 8), byte(i)})
		table.ip, table.legs = spec.IP, slices.Clone(table.legs)
		if err := b.w.putGroup(spec, table); err != nil {
			t.Fatal(err)
		}
	}
}

// at has fs run with group id as the bench's own.
func (b *bench) at(id int, fs ...func()) {
	was := b.group
	if id > 0 {
		b.group = b.w.groups[id].ip
	}
	for _, f := range fs {
		f()
	}
	b.group = was
}

// Between two batches a worker looks at lookBatch groups at most, those with outstanding packets alone, each
// once in lookInterval.
func TestLooksAreBounded(t *testing.T) {
	const groups, active = 100, 40
	b := newBench(t, 3)
	b.putMore(t, groups)
	w := b.w
	looked := make(map[mcast.GroupID]int)
	batch := func() (n int) {
		x := &w.delays
		head, due := x.head, slices.Clone(x.queue)
		w.lookAtDelays()
		for i := head; i != x.head; i = (i + 1) % len(due) {
			looked[due[i].id]++
			n++
		}
		return n
	}
	for id := groups; id > groups-active; id-- {
		b.at(id, func() { b.one(0, 1, nil); b.one(1, 1, nil) })
		b.unstage()
	}
	if n := batch(); n != 0 {
		t.Errorf("%d groups are looked at before it is time", n)
	}
	for round := 1; round <= 3; round++ {
		w.now += lookInterval
		for left := active; left > 0; left -= lookBatch {
			if n := batch(); n != min(left, lookBatch) {
				t.Errorf("round %d: %d groups are looked at in a batch, with %d due", round, n, left)
			}
		}
		if n := batch(); n != 0 {
			t.Errorf("round %d: %d groups are looked at again at once", round, n)
		}
		for id := mcast.GroupID(0); id <= groups; id++ {
			if want := round * max(0, min(1, int(id)-(groups-active))); looked[id] != want {
				t.Errorf("round %d: group %d was looked at %d times, want %d", round, id, looked[id], want)
			}
		}
	}
}

// Looks allocate nothing: at members that are slow, at a stall, and when a group's delay changes.
func TestLooksAllocateNothing(t *testing.T) {
	b := newBench(t, 4)
	psn := rocev2.PSN(0)
	changes := 0
	run := func() {
		for range 20 { // host 3 is late
			b.notReady(psn)
			psn++
		}
		b.one(psn, 2, nil)
		for range 20 { // it stands still
			b.lookOnce()
		}
		b.say(3, psn, rocev2.SyndromeACK)
		b.unstage()
		psn++
		for range 100 { // nothing is outstanding
			b.lookOnce()
		}
		for _, ok := b.w.delays.changed.next(); ok; _, ok = b.w.delays.changed.next() {
			changes++
		}
	}
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if changes < 20 {
		t.Errorf("%d delays have changed in 20 runs", changes)
	}
}

// A worker does not sleep beyond a look. Looks that were stopped for a measurement go on when they are wanted again, and say of no group
// that it is delayed meanwhile.
func TestLooksStop(t *testing.T) {
	b := newBench(t, 3)
	b.repair(t, 0) // so that nothing else is due soon
	x := &b.w.delays
	b.one(0, 1, nil)
	b.w.flush()
	if d := b.mayWait(); d > lookInterval || d < lookInterval/2 {
		t.Errorf("the worker may sleep for %v, and a look is due in %v", d, lookInterval)
	}
	for range 6 {
		b.lookOnce()
	}
	if got := b.delaysOf(); len(got) != 1 || got[0].Kind != Stalled {
		t.Fatalf("%+v", got)
	}
	x.stop()
	if got := b.delaysOf(); len(got) != 1 || got[0] != (GroupDelay{}) {
		t.Errorf("%+v", got)
	}
	b.one(1, 1, nil)
	for range 6 {
		b.lookOnce()
	}
	if got := b.delaysOf(); len(got) > 0 || x.count > 0 {
		t.Errorf("without looks: %+v, %d are due", got, x.count)
	}
	x.goOn()
	b.one(2, 1, nil)
	b.lookOnce()
	if got := b.delaysOf(); len(got) != 1 || got[0].Kind != Stalled {
		t.Errorf("with looks again: %+v", got)
	}
}
