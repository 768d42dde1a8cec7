// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"slices"
	"testing"
)

// A Gone that has waited, for the state file, while the switch has sent others to its neighbour counts still:
// with the number that is the next one as it leaves. So it does if the neighbour was away meanwhile; what is
// asked for again is void then, and everything without a neighbour.
func TestRelayThatHasWaited(t *testing.T) {
	for name, c := range map[string]struct{ others, cuts int }{"at once": {}, "behind 100 others": {others: 100}, "after another session began": {cuts: 1}} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 2, [][2]int{{0, 1}})
			reg := f.registered(0, 1)
			root, leaf := f.switches[0], f.switches[1]
			at := slices.Index(leaf.sw.groups[reg.Group].reg.Tree.Legs, NoNeighbour)
			gone := leaf.sw.groups[reg.Group].reg.Members[at].Key()
			var out Output
			leaf.sw.MemberEvicted(f.now, reg.Group, gone, Elsewhere, 7, &out)
			if len(out.Relays) != 1 || !out.Relays[0].Lasts || !out.Relays[0].Promises {
				t.Fatalf("%+v", out.Relays)
			}
			waiting := out.Relays[0]
			asked := Relay{To: 1, Group: reg.Group, Data: leaf.sw.seal(leaf.sw.neighbours[1], encodeRelay(&relay{kind: relayRenewed, id: root.sw.groups[reg.Group].branch.id, group: reg.Group}))}
			for range c.others {
				root.sw.InputFromSwitch(f.now, 1, leaf.sw.seal(leaf.sw.neighbours[1], encodeRelay(&relay{kind: relayRenewed, id: root.sw.groups[reg.Group].branch.id, group: reg.Group})), &out)
			}
			for range c.cuts {
				for _, s := range f.switches {
					a := s.sw.neighbours[1].Adjacency
					a.Session++
					s.sw.SetNeighbour(f.now, 1, &a)
				}
			}
			if c.others+c.cuts > 0 {
				if root.sw.InputFromSwitch(f.now, 1, waiting.Data, &out); out.Drop != DuplicateMsg && out.Drop != WrongInstance {
					t.Fatalf("as it was it is dropped as %v", out.Drop)
				}
			}
			if got := leaf.sw.Reseal(&asked); got != (c.cuts == 0) {
				t.Errorf("an answer leaves: %v", got)
			}
			if !leaf.sw.Reseal(&waiting) {
				t.Fatal("the Gone is void")
			}
			root.sw.InputFromSwitch(f.now, 1, waiting.Data, &out)
			if !slices.ContainsFunc(out.Events, func(e Event) bool { return e.Kind == MemberGone && e.Member == gone && e.EndReason == Evicted }) {
				t.Errorf("the root does not take it: %v %s, %+v", out.Drop, out.Detail, out.Events)
			}
			leaf.sw.SetNeighbour(f.now, 1, nil)
			if leaf.sw.Reseal(&waiting) {
				t.Error("a relay to nobody leaves")
			}
		})
	}
}

// What nobody asks for lasts: that a membership has ended.
func TestLasts(t *testing.T) {
	for _, b := range []Body{&Accept{}, &Notify{}, &Reject{}, &Challenge{}, &Where{}} {
		if lasts(b) {
			t.Errorf("%v lasts", b.kind())
		}
	}
	if !lasts(&Gone{}) {
		t.Error("a Gone does not last")
	}
	for k := relayPrepare; k < numRelayKinds; k++ {
		if k.lasts() != (k == relayGone || k == relayEnd) {
			t.Errorf("%v: %v", k, k.lasts())
		}
	}
}
