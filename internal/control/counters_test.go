// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"maps"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/envelope/hello"
)

// The reasons of envelopes are counted beside those of packets, each once, under a name of
// its own; what a healthy switch has is told apart from what was refused.
func TestEnvelopeReasonsAreCounted(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range Reasons() {
		if names[r.Name] {
			t.Errorf("%s is there twice", r.Name)
		}
		names[r.Name] = true
	}
	if want := len(dataplane.Reasons()) + int(envelope.NumDrops) - 1 + int(hello.NumDrops) - 1 + int(cm.NumDrops) - 1 + 1; len(names) != want {
		t.Errorf("%d reasons, want %d", len(names), want)
	}
	var c counters
	c.envelope[envelope.WrongInstance], c.envelope[envelope.BadMAC], c.unsent = 4, 5, 6
	c.cm[cm.WrongSource], c.outboxFull = 7, 8
	normal, drops := map[string]uint64{"duplicate_data": 1}, map[string]uint64{dataplane.NoLocation: 2, "queue_full": 3}
	c.addTo(normal, drops)
	if want := map[string]uint64{"duplicate_data": 1, "envelope_wrong_instance": 4}; !maps.Equal(normal, want) {
		t.Errorf("normal: %v, want %v", normal, want)
	}
	if want := map[string]uint64{dataplane.NoLocation: 8, "queue_full": 3, "envelope_bad_mac": 5, "cm_wrong_source": 7, "outbox_full": 8}; !maps.Equal(drops, want) {
		t.Errorf("drops: %v, want %v", drops, want)
	}
	for name := range drops {
		if !names[name] {
			t.Errorf("%s is no reason", name)
		}
	}
}

// A table for the workers names the members that have gone.
func TestTablesNameWhoIsGone(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	r := f.register(0, 3, 0x100, "evict")
	if err := f.RemoveMember(r.Group, fakeHost(1)); err != nil {
		t.Fatal(err)
	}
	f.control.do(func() {
		g := f.control.dir.groups[r.Group]
		table := f.control.dir.makeTable(g.reg, g.slots, g.legs)
		for i, d := range table.Destinations {
			if d.Gone != (i == 1) || d.Port != i || d.IP != fakeHost(i) {
				t.Errorf("destination %d is %+v", i, d)
			}
		}
	})
}
