// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// TestManyGroupsNeedNoMore: the defaults fit any number of groups.
func TestManyGroupsNeedNoMore(t *testing.T) {
	for _, n := range []int{32767, 32768, 40000} {
		_, err := NewRegistrar(RegistrarConfig{
			Secret: [SecretLen]byte{1}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, Auth: testAuth(), MaxGroups: n,
		}, newTableStub())
		if err != nil {
			t.Errorf("%d groups: %v", n, err)
		}
	}
}

// TestWhatTheRegistrarTells: the groups in order, and copies of their registrations.
func TestWhatTheRegistrarTells(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	for g := byte(30); g > 10; g-- {
		a.register(epoch(sample(g, 2), 1))
	}
	groups := a.w.sw.Groups()
	if len(groups) != 20 || !slices.IsSortedFunc(groups, netip.Addr.Compare) {
		t.Errorf("%v", groups)
	}
	got, _, _ := a.w.sw.Group(groups[0])
	got.Members[0].QPN++
	if again, _, _ := a.w.sw.Group(groups[0]); again.Members[0].QPN == got.Members[0].QPN {
		t.Error("a caller can change a registration")
	}
}

// TestMappedSource: a request that the socket shows from an IPv4-mapped address is one
// from the IPv4 address.
func TestMappedSource(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 1)
	b, err := Append(nil, &Message{a.head(reg.Group, 1), &Register{reg.groupBody(reg.Members)}}, testKeys, 7)
	if err != nil {
		t.Fatal(err)
	}
	var out Output
	a.w.sw.Input(0, netip.AddrPortFrom(netip.AddrFrom16(masterAddr.Addr().As16()), masterAddr.Port()), b, &out)
	if a.reason(out) != NoReason {
		t.Errorf("drop %v, %s", out.Drop, out.Detail)
	}
}

// TestEveryAddressIsNoGroup: a prefix of all addresses serves those of hosts only.
func TestEveryAddressIsNoGroup(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}})
	for _, ip := range []string{"224.1.2.3", "127.0.0.1", "255.255.255.255", "0.0.0.0"} {
		if r := a.reason(a.ask(a.head(netip.MustParseAddr(ip), 1), &Delete{})); r != NotGroupPrefix {
			t.Errorf("%s: %v", ip, r)
		}
	}
}

// TestHintEnds: a request without the key is told so if the answer is not longer than the
// request, and if it was not relayed.
func TestHintEnds(t *testing.T) {
	reg := sample(1, 2)
	size := 0
	for _, c := range []struct {
		name  string
		more  func() int // bytes behind the header
		relay bool
		hints int
	}{
		{"long", func() int { return 100 }, false, 1},
		{"as long as the answer", func() int { return size - headerLen(false) }, false, 1},
		{"shorter by a byte", func() int { return size - headerLen(false) - 1 }, false, 0},
		{"relayed", func() int { return 100 }, true, 0},
	} {
		a := newAsker(t, RegistrarConfig{})
		h := a.head(reg.Group, 1)
		h.Relay = c.relay
		m := Message{h, &Delete{}}
		b, err := m.append(nil, c.more())
		if err != nil {
			t.Fatal(err)
		}
		out := a.raw(append(b, make([]byte, c.more())...))
		if out.Drop != Unauthenticated || len(out.Packets) != c.hints {
			t.Errorf("%s: drop %v, %d answers", c.name, out.Drop, len(out.Packets))
		}
		if c.name == "long" && len(out.Packets) == 1 {
			size = len(out.Packets[0].Data)
		}
		b, err = m.append(nil, 200)
		if err != nil {
			t.Fatal(err)
		}
		// An envelope without an answer does not delay the next hint.
		if out = a.raw(append(b, make([]byte, 200)...)); !c.relay && len(out.Packets) != 1-c.hints {
			t.Errorf("%s: %d answers to the next one", c.name, len(out.Packets))
		}
	}
}

// TestRejectedBefore: an epoch that was rejected has its reason until a newer one is
// served.
func TestRejectedBefore(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	bad := epoch(sample(1, 3), 5)
	bad.PathMTU = 1500
	for range 2 {
		if r := a.reason(a.register(bad)); r != PathMTUMismatch {
			t.Errorf("%v", r)
		}
	}
	if r := a.reason(a.register(epoch(sample(1, 3), 6))); r != NoReason {
		t.Fatal(r)
	}
	if r := a.reason(a.register(bad)); r != StaleEpoch {
		t.Errorf("behind a newer one: %v", r)
	}
}

// TestOlderSegments: while segments of an epoch are put together, those of an older one
// change nothing, with any transaction.
func TestOlderSegments(t *testing.T) {
	reg := sample(1, 4)
	for _, tx := range []uint32{99, 100, 101} {
		a := newAsker(t, RegistrarConfig{})
		part := func(epoch uint64, tx uint32, seq int) Output {
			h := a.head(reg.Group, epoch)
			h.Transaction, h.Seq, h.Total = tx, uint16(seq), 2
			return a.ask(h, &Register{reg.groupBody(reg.Members[2*seq : 2*seq+2])})
		}
		part(6, 100, 0)
		if out := part(5, tx, 1); out.Drop != StaleMessage || len(out.Packets) > 0 {
			t.Errorf("transaction %d: drop %v, %d answers", tx, out.Drop, len(out.Packets))
		}
		if a.reason(part(6, 100, 1)) != NoReason {
			t.Errorf("transaction %d: the newer registration was lost", tx)
		}
	}
}

// TestFewerMembersThanAnnounced: a registration is complete with all members that it
// announces.
func TestFewerMembersThanAnnounced(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 5)
	if r := a.reason(a.ask(a.head(reg.Group, 5), &Register{reg.groupBody(reg.Members[:2])})); r != Malformed {
		t.Errorf("two of three: %v", r)
	}
	if _, _, ok := a.w.sw.Group(reg.Group); ok || len(a.w.table.calls) > 0 {
		t.Errorf("it was installed: %v", a.w.table.calls)
	}
}

// TestFullTableIsUpdated: a group that is there, or is being located, needs no new place.
func TestFullTableIsUpdated(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxGroups: 1, MaxPMTU: 1024})
	reg := sample(1, 3) // of the largest path MTU
	later := Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	a.w.table.verdict[reg.Group] = later
	a.register(epoch(reg, 5))
	delete(a.w.table.verdict, reg.Group)
	var out Output
	if a.w.sw.RetryGroup(0, reg.Group, &out); a.reason(out) != NoReason {
		t.Error("a group that was located finds no place")
	}
	if r := a.reason(a.register(epoch(reg, 6))); r != NoReason {
		t.Errorf("its next epoch: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(2, 2), 6))); r != TableFull {
		t.Errorf("another group: %v", r)
	}
}

// TestOperatorReplacesWhatIsLocated: the operator hears of the own registration, not of
// the one that it replaces.
func TestOperatorReplacesWhatIsLocated(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := sample(1, 3)
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	a.register(epoch(reg, 5))
	delete(a.w.table.verdict, reg.Group)
	var out Output
	if e, err := a.w.sw.RegisterLocal(0, epoch(reg, 6), &out); err != nil || e != 6 {
		t.Errorf("epoch %d, %v", e, err)
	}
	a.w.books()
}

// TestLocalGroupsWithoutKeys: where messages need no MAC, the operator's groups are still
// the operator's, and nobody's quota.
func TestLocalGroupsWithoutKeys(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Auth: Auth{Insecure: true}, Rights: map[KeyID]Rights{0: {Quota: Quota{Groups: 1}}}})
	var out Output
	for g := byte(1); g < 4; g++ {
		if _, err := a.w.sw.RegisterLocal(0, sample(g, 2), &out); err != nil {
			t.Errorf("group %d: %v", g, err)
		}
	}
	if r := a.reason(a.ask(a.head(sample(1, 2).Group, 1), &Delete{})); r != OtherKey {
		t.Errorf("delete by the network: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(5, 2), 1))); r != NoReason {
		t.Errorf("the first group under no key: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(6, 2), 1))); r != QuotaExceeded {
		t.Errorf("the second: %v", r)
	}
	h := a.head(sample(7, 2).Group, 1)
	h.Total = 2
	r := sample(7, 2)
	a.askUnder(h, &Register{r.groupBody(r.Members[:1])})
	orphans, err := a.w.sw.SetKeys(0, Auth{Insecure: true}, nil)
	if err != nil || len(orphans) > 0 || len(a.w.sw.pending) != 1 {
		t.Errorf("orphans %v, %d pending, %v", orphans, len(a.w.sw.pending), err)
	}
	a.w.books()
}

// TestBooksBehindAGroup: a group that goes while its next epoch is being located leaves
// that one in the accounts.
func TestBooksBehindAGroup(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := sample(1, 3)
	a.register(epoch(reg, 5))
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	next := epoch(sample(1, 4), 6)
	a.register(next)
	a.w.books()
	var out Output
	a.w.sw.GroupFailed(0, reg.Group, reg.Members[0].Key(), 0, 0, &out)
	a.ask(a.head(reg.Group, 5), &Delete{})
	a.w.books()
}

// TestMasterMoves: a master that updates its group from another port is not told that the
// group was replaced.
func TestMasterMoves(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	a.register(epoch(sample(1, 3), 5))
	a.from = netip.AddrPortFrom(masterAddr.Addr(), 6000)
	up := epoch(sample(1, 4), 6)
	up.Base = 5
	out := a.register(up)
	if a.reason(out) != NoReason {
		t.Fatal("the update was rejected")
	}
	for _, p := range out.Packets {
		if m, err := Parse(p.Data); err != nil || m.Type == TypeGone {
			t.Errorf("%v to %v, %v", m.Type, p.Dst, err)
		}
	}
}

// TestSameAgainStopsLocating: a registration that is the live group's takes the place of
// one that is being located.
func TestSameAgainStopsLocating(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := sample(1, 3)
	a.register(epoch(reg, 5))
	a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
	a.register(epoch(sample(1, 4), 6))
	delete(a.w.table.verdict, reg.Group)
	if r := a.reason(a.register(epoch(reg, 7))); r != NoReason {
		t.Fatal(r)
	}
	var out Output
	a.w.sw.RetryGroup(0, reg.Group, &out)
	if got, _, _ := a.w.sw.Group(reg.Group); len(out.Events) > 0 || got.Epoch != 7 || len(got.Members) != 3 {
		t.Errorf("epoch %d with %d members, %v", got.Epoch, len(got.Members), out.Events)
	}
	a.w.books()
}

// TestUpdateOfAWindow: an update that gives a queue pair another window is not the same
// record, and the PSNs of the queue pair are used once data has flowed.
func TestUpdateOfAWindow(t *testing.T) {
	for _, carried := range []bool{false, true} {
		a := newAsker(t, RegistrarConfig{})
		reg := withWindows(sample(1, 3))
		a.register(epoch(reg, 5))
		a.w.table.carried[reg.Group] = carried
		up := epoch(reg, 6)
		up.Base, up.Members = 5, slices.Clone(reg.Members)
		up.Members[1].Window = mcast.Window{Base: 1 << 40, Len: up.Members[1].Window.Len, RKey: 9}
		if r := a.reason(a.register(up)); (r == UsedNumbers) != carried {
			t.Errorf("data has flowed %t: %v", carried, r)
		}
	}
}

// TestLastTry: the time to locate members ends by itself, and with a last try.
func TestLastTry(t *testing.T) {
	const retry, timeout = 1500 * time.Millisecond, 2 * time.Second
	for _, found := range []bool{false, true} {
		a := newAsker(t, RegistrarConfig{LocateRetry: retry, LocateTimeout: timeout})
		reg := sample(1, 3)
		a.w.table.verdict[reg.Group] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: reg.Members[1].Key()}}
		a.register(epoch(reg, 5))
		var out Output
		for _, want := range []time.Duration{retry, timeout} {
			at, ok := a.w.sw.NextDeadline()
			if !ok || at != want {
				t.Fatalf("next at %v, want %v", at, want)
			}
			if found && at == timeout {
				delete(a.w.table.verdict, reg.Group)
			}
			a.w.sw.Advance(at, &out)
		}
		want := UnknownMemberLocation
		if found {
			want = NoReason
		}
		if got := a.reason(out); got != want {
			t.Errorf("found %t: %v", found, got)
		}
		if _, _, ok := a.w.sw.Group(reg.Group); ok != found {
			t.Errorf("found %t, installed %t", found, ok)
		}
	}
}

// TestMemberOfTheOperatorComesBack: an operator's update may name a member that was
// evicted; a master's may not, and hears of the eviction again.
func TestMemberOfTheOperatorComesBack(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	var out Output
	reg := sample(1, 3)
	e, err := w.sw.RegisterLocal(0, reg, &out)
	if err != nil {
		t.Fatal(err)
	}
	w.table.RemoveMember(reg.Group, reg.Members[1].Key(), Evicted)
	w.sw.MemberEvicted(0, reg.Group, reg.Members[1].Key(), 0, 5, &out)
	reg.Base = e
	if _, err := w.sw.RegisterLocal(0, reg, &out); err != nil {
		t.Error(err)
	}
}

// TestEachEvictionIsTold: a master that counts on an evicted member is told of that one
// again, also while it is being told of another.
func TestEachEvictionIsTold(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 5), 5)
	a.register(reg)
	evict := func(i int) uint32 {
		var out Output
		a.w.sw.MemberEvicted(0, reg.Group, reg.Members[i].Key(), 0, 7, &out)
		for _, p := range out.Packets {
			if m, err := Parse(p.Data); err == nil && p.Dst == masterAddr {
				return m.Transaction
			}
		}
		t.Fatalf("the master was not told of member %d", i)
		return 0
	}
	told := evict(1)
	h := a.head(reg.Group, 5)
	h.Transaction = told
	a.ask(h, &Ack{})
	evict(2)
	up := epoch(reg, 6)
	up.Base, up.Members = 5, append(slices.Clone(reg.Members[:2]), reg.Members[3:]...)
	out := a.register(up)
	gone := 0
	for _, p := range out.Packets {
		m, err := Parse(p.Data)
		if err != nil {
			t.Fatal(err)
		}
		if g, ok := m.Body.(*Gone); ok && p.Dst == masterAddr && g.Member == reg.Members[1].Key() {
			gone++
		}
	}
	if r := a.reason(out); r != MembersChanged || gone != 1 {
		t.Errorf("%v, told %d times of member 1", r, gone)
	}
}
