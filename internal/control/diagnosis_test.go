// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Packets that do not fit a registration say what is wrong with it: in the group's
// state, and once in the journal, for each member and number.
func TestWrongNumbersAreNamed(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.register(0, 3, 0x100, "strict") // host 1 sends from PSN 1000 on
	const again = 6                   // times that a queue pair repeats itself
	for range again {
		f.feed(0, send(1, 900))
		f.feedTo(0, 0x1000, answer(2, 5, rocev2.SyndromeACK))
	}
	for _, c := range []struct {
		member int
		says   []string
	}{
		{1, []string{"sq-psn", "seen at PSN 0x000384", "expected 0x0003e8"}},
		{2, []string{"wrong_qpn", "for QPN 0x001000", "virtual QPN is 0x004711", "--qpn"}},
	} {
		f.eventually("the journal names a number", func() bool { return len(f.events(0, api.EventMismatch)) == 2 })
		g, err := f.Group(fakeGroup(0))
		if err != nil {
			t.Fatal(err)
		}
		var e api.Event
		for _, x := range f.events(0, api.EventMismatch) {
			if x.Member == fakeHost(c.member) {
				e = x
			}
		}
		for _, s := range c.says {
			if d := g.Members[c.member].Diagnosis; !strings.Contains(d, s) || !strings.Contains(e.Reason, s) {
				t.Errorf("member %d: %q is not in the diagnosis %q and the event %+v", c.member, s, d, e)
			}
		}
		if g.Members[0].Diagnosis != "" {
			t.Errorf("a member without a packet has the diagnosis %q", g.Members[0].Diagnosis)
		}
		if g.Drops["wrong_qpn"] != again || g.Drops["psn_out_of_range"] != again || len(g.Normal) > 0 {
			t.Errorf("the group counts %v and %v", g.Drops, g.Normal)
		}
	}
	for range again {
		f.feed(0, send(1, 900))
	}
	if _, err := f.Group(fakeGroup(0)); err != nil || len(f.events(0, api.EventMismatch)) != 2 {
		t.Errorf("the same once more: %+v, %v", f.events(0, api.EventMismatch), err)
	}
	f.register(0, 3, 0x100, "strict") // no change: what is known stays
	if g, err := f.Group(fakeGroup(0)); err != nil || g.Members[1].Diagnosis == "" {
		t.Errorf("after the same registration: %+v, %v", g, err)
	}
	if g, err := f.Group(fakeGroup(0)); err != nil || g.Source.IsValid() {
		t.Error("a packet with a wrong number made a source")
	}
}
