// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestOffloadTableIsDocumented: the table of docs/FAST-PATH.md is that of the code.
func TestOffloadTableIsDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "FAST-PATH.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "## Who forwards (R97, R98, R103)")
	for e := range numOffloadEvents {
		row := []string{e.String()}
		for s := range numOffloadStates {
			row = append(row, offloadTable[e][s].String())
		}
		if want := "| " + strings.Join(row, " | ") + " |\n"; !strings.Contains(text, want) {
			t.Errorf("docs/FAST-PATH.md has no row %s", want)
		}
	}
}

// offloaded returns a switch with a group of A, B and C that is on the fast path from PSN 1 on.
func offloaded(t *testing.T, change func(*GroupSpec)) (*Switch, *Output) {
	t.Helper()
	s, out := New(Limits{}), &Output{}
	spec := GroupSpec{
		IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, Repair: RepairSpec{Bytes: 1 << 16, Timeout: time.Millisecond, Tries: 2},
		FastPath: FastPathSpec{Slots: 8, Drain: time.Millisecond, Backoff: time.Second},
	}
	for i, n := range []string{"A", "B", "C"} {
		spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(n), QPN: 0x100}, Leg: LegID(i)})
	}
	if change != nil {
		change(&spec)
	}
	if err := s.Apply(0, PutGroup{spec}, out); err != nil {
		t.Fatal(err)
	}
	if s.groups[0].tree() != nil {
		joinTree(t, s, 0)
	}
	s.Input(0, dataOf(0), out)
	if g, ok := s.Offload(0, 0, out); !ok || g.Nxt != 1 {
		t.Fatalf("granted %+v, %v", g, ok)
	}
	return s, out
}

func dataOf(psn rocev2.PSN) *Packet {
	return &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf("A"), Op: rocev2.SendOnly, Payload: 100, PSN: psn, Verified: true, Frame: Handle(psn), RetainBytes: minFrameBytes}
}

// TestOffloadedGroupIsNotChanged: what the core does not know to be forwarded could be judged
// wrongly by a change, so the group has to be taken back first.
func TestOffloadedGroupIsNotChanged(t *testing.T) {
	s, out := offloaded(t, nil)
	for _, op := range []Op{DeleteGroup{}, RemoveMember{Member: 2}, UpdateMembers{Remove: []MemberID{1}}, PutGroup{GroupSpec{}}} {
		if err := s.Apply(0, op, out); err == nil {
			t.Errorf("%T is applied", op)
		}
	}
	s.Revoked(0, 0, out)
	if err := s.Apply(0, RemoveMember{Member: 2}, out); err != nil {
		t.Error(err)
	}
}

// TestReportsToAnOffloadedGroup: a report of a neighbour behind a leg takes the group back, and that
// of any other neighbour, which may lack the group's key, does not.
func TestReportsToAnOffloadedGroup(t *testing.T) {
	s, out := offloaded(t, func(spec *GroupSpec) { spec.Legs[2] = LegSpec{Kind: Forwarded, Neighbor: 1} })
	s.InputReport(0, 0, 2, &token.Message{}, out)
	if out.NeedRevoke || out.Drop != NoSession {
		t.Errorf("a neighbour to which no leg leads: revoke %v, drop %v", out.NeedRevoke, out.Drop)
	}
	s.InputReport(0, 0, 1, &token.Message{}, out)
	if !out.NeedRevoke || out.Drop != None {
		t.Errorf("a neighbour behind a leg: revoke %v, drop %v", out.NeedRevoke, out.Drop)
	}
	s, out = offloaded(t, nil)
	if s.InputReport(0, 0, 1, &token.Message{}, out); out.NeedRevoke || out.Drop != NoSession {
		t.Errorf("a group without legs to switches: revoke %v, drop %v", out.NeedRevoke, out.Drop)
	}
}

// TestOffloadIsNotGranted: a group that has a decision ahead stays on the slow path.
func TestOffloadIsNotGranted(t *testing.T) {
	for name, change := range map[string]func(*group){
		"failed":                func(g *group) { g.set(failed, true) },
		"no source":             func(g *group) { g.src.member = none },
		"a joining leg":         func(g *group) { g.set(joiners, true) },
		"nobody receives":       func(g *group) { g.set(noReceivers, true) },
		"quorum lost":           func(g *group) { g.set(tooFew, true) },
		"a refusal":             func(g *group) { g.set(refused, true) },
		"a turn that ends":      func(g *group) { g.set(ending, true) },
		"others wait":           func(g *group) { g.turn.contendedSince = 1 },
		"a frozen source":       func(g *group) { g.set(frozen, true) },
		"a wanted token":        func(g *group) { g.set(wanted, true) },
		"a quarantined source":  func(g *group) { g.set(quarantined, true) },
		"unplaced legs":         func(g *group) { g.set(unplaced, true) },
		"a blocked message":     func(g *group) { g.set(blocked, true) },
		"a gap":                 func(g *group) { g.numbering.gap = true },
		"data that waits":       func(g *group) { g.set(awaitsFile, true) },
		"a resume":              func(g *group) { g.set(resumes, true) },
		"targets":               func(g *group) { g.fwd.targets = newTargets(3) },
		"a source that is back": func(g *group) { g.src.lastPSN-- },
		"an unserved NAK":       func(g *group) { g.agg.request.severity = sevSequence },
		"a full ring":           func(g *group) { g.extra.offload.spec.Slots = 1 },
		"the backoff":           func(g *group) { g.extra.offload.grantFrom = 2 },
		"the drain":             func(g *group) { g.repair.path, g.extra.offload.drainUntil = draining, 2 },
		"the grant before":      func(g *group) { g.repair.path = fastPath },
	} {
		s, out := offloaded(t, nil)
		g := s.group(0)
		g.repair.path = corePath
		if !g.mayOffload(1) {
			t.Fatal("not granted anyway")
		}
		change(g)
		if _, ok := s.Offload(1, 0, out); ok {
			t.Errorf("%s: granted", name)
		}
	}
	if _, ok := New(Limits{}).Offload(0, 0, &Output{}); ok {
		t.Error("granted to no group")
	}
}

// TestOffloadLimit: the fast path takes nothing that its ring has no slot for, nothing beyond
// the stored positions, and nothing too far ahead.
func TestOffloadLimit(t *testing.T) {
	s, _ := offloaded(t, nil)
	g := s.group(0)
	if got := s.Group(0).OffloadLimit(); got != 8 {
		t.Errorf("ring: %x", got)
	}
	g.policy.stored, g.fwd.limit = true, 5
	if got := s.Group(0).OffloadLimit(); got != 5 {
		t.Errorf("positions: %x", got)
	}
	g.policy.stored, g.extra.offload.spec.Slots, g.repair.store.first = false, 16, rocev2.PSN(0).Add(maxAhead)
	if got := s.Group(0).OffloadLimit(); got != rocev2.PSN(maxAhead) {
		t.Errorf("ahead: %x", got)
	}
	if got := s.Group(7).OffloadLimit(); got != 0 {
		t.Errorf("no group: %x", got)
	}
}

// TestForwardedThatAsksForAnACK: a packet that the fast path has forwarded is waited for if it asks for an ACK.
func TestForwardedThatAsksForAnACK(t *testing.T) {
	for _, asks := range []bool{false, true} {
		s, out := offloaded(t, nil)
		p := dataOf(1)
		p.AckReq = asks
		s.InputForwarded(0, 0, p, out)
		if last := s.group(0).repair.ackReqPSN; (last == 1) != asks {
			t.Errorf("asks %t: the last packet that does is %d", asks, last)
		}
	}
}

// TestForwardedIsTaken: reports of what the core knows already, or of a group that is not
// offloaded, are dropped; a pause before a packet has it verified.
func TestForwardedIsTaken(t *testing.T) {
	s, out := offloaded(t, nil)
	p := dataOf(1)
	p.Verified = false
	if s.InputForwarded(MaxInOrderGap+1, 0, p, out); !out.NeedVerify {
		t.Error("R64: not verified after a pause")
	}
	if s.InputForwarded(0, 0, dataOf(1), out); out.Drop != None || !out.Retained || len(out.Copies) > 0 {
		t.Errorf("%+v", out)
	}
	if s.InputForwarded(0, 0, dataOf(1), out); out.Drop != PSNOutOfRange {
		t.Error("taken twice")
	}
	var st GroupStatus
	if s.Group(0).Snapshot(&st); st.Counters.DataIn != 2 || st.Counters.Copies != 4 || st.Nxt != 2 {
		t.Errorf("%+v", st)
	}
	s.Revoked(0, 0, out)
	if s.InputForwarded(0, 0, dataOf(2), out); out.Drop != PSNOutOfRange {
		t.Error("taken after the group was taken back")
	}
	s.group(0).set(failed, true)
	if s.InputForwarded(0, 0, dataOf(2), out); out.Drop != FailedGroup {
		t.Error("a failed group forwards")
	}
	if s.InputForwarded(0, 3, dataOf(2), out); out.Drop != UnknownGroup {
		t.Error("no group")
	}
}

// TestOffloadedIsTakenBack: what begins while the group is offloaded, and needs the core to
// see every packet, has the group taken back at the end of the call.
func TestOffloadedIsTakenBack(t *testing.T) {
	s, out := offloaded(t, nil)
	s.group(0).set(ending, true)
	if s.InputForwarded(0, 0, dataOf(1), out); !slices.Equal(out.Orders, []Order{{Kind: Revoke}}) {
		t.Errorf("orders %+v", out.Orders)
	}
	other := dataOf(0)
	other.Src, other.Verified = ipOf("B"), false
	if s.Input(0, other, out); !out.NeedVerify || out.NeedRevoke {
		t.Error("an unverified packet of another member takes the group back")
	}
	other.Verified = true
	if s.Input(0, other, out); !out.NeedRevoke || len(out.Feedback) > 0 {
		t.Errorf("another member is answered while the group is offloaded: %+v", out)
	}
}

// TestOffloadedIsNotAtRest: the memory of a group that is offloaded stays, however long nothing
// is reported. When it has been taken back it may be given to another group.
func TestOffloadedIsNotAtRest(t *testing.T) {
	s, out := offloaded(t, nil)
	for _, n := range []string{"B", "C"} {
		s.Input(0, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(n), Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK, Verified: true}, out)
		if out.Drop != None {
			t.Fatalf("the ACK of %s: %v", n, out.Drop)
		}
	}
	if s.group(0).idle(time.Hour) {
		t.Error("an offloaded group is idle")
	}
	if s.Revoked(time.Second, 0, out); !s.group(0).idle(time.Hour) {
		t.Error("a group that was taken back is never idle")
	}
}

func TestFastPathSpecs(t *testing.T) {
	r := RepairSpec{Bytes: 1}
	for _, c := range []struct {
		f    FastPathSpec
		r    RepairSpec
		want string
	}{
		{FastPathSpec{}, RepairSpec{}, ""},
		{FastPathSpec{Slots: 8, Drain: 1}, r, ""},
		{FastPathSpec{Slots: maxSlots, Drain: 1}, r, ""},
		{FastPathSpec{Slots: 2 * maxSlots, Drain: 1}, r, "slots"},
		{FastPathSpec{Slots: 6, Drain: 1}, r, "slots"},
		{FastPathSpec{Slots: -8, Drain: 1}, r, "slots"},
		{FastPathSpec{Drain: 1}, r, "slots"},
		{FastPathSpec{Slots: 8}, r, "drain"},
		{FastPathSpec{Slots: 8, Drain: 1, Backoff: -1}, r, "backoff"},
		{FastPathSpec{Slots: 8, Drain: 1}, RepairSpec{}, "local repair"},
	} {
		err := c.f.check(&c.r)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}

// TestR34_EveryPacketIsReported: what a fast path forwards counts as what the switch forwards, message
// by message, since it is told of each packet.
func TestR34_EveryPacketIsReported(t *testing.T) {
	s, out := offloaded(t, nil)
	for psn, op := range []rocev2.Opcode{1: rocev2.SendOnly, 2: rocev2.SendFirst, 3: rocev2.SendLast, 4: rocev2.SendOnly} {
		if psn == 0 {
			continue
		}
		p := dataOf(rocev2.PSN(psn))
		if p.Op = op; op == rocev2.SendFirst {
			p.Payload = 1024
		}
		s.InputForwarded(1, 0, p, out)
	}
	for _, n := range []string{"B", "C"} {
		s.Input(2, &Packet{Group: groupIP, DestQP: groupQPN, Src: ipOf(n), Op: rocev2.Acknowledge, PSN: 3, Verified: true}, out)
	}
	if fb := out.Feedback; len(fb) != 1 || fb[0].PSN != 3 || fb[0].MSN != 3 {
		t.Errorf("feedback %+v, want an ACK of 3 messages up to PSN 3", fb)
	}
	var st GroupStatus
	if s.Group(0).Snapshot(&st); st.Nxt != 5 || st.Counters.DataIn != 5 || st.Counters.Copies != 10 {
		t.Errorf("next %d, %d packets, %d copies; want 5, 5 and 10", st.Nxt, st.Counters.DataIn, st.Counters.Copies)
	}
}
