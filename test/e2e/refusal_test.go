// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab"
)

// An envelope that the switch cannot answer, since it has another key, is named
// by the switch: group, sender, port and reason, in its log and its events. A
// flood of them is one line and one event, not one for each.
func TestUnanswerableEnvelopeIsNamed(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	f := newForger(r)
	list := f.envelopes()
	bad := list[slices.IndexFunc(list, func(h hostile) bool { return h.name == "wrong key" })]
	wire := newTap(t, r.star.Hosts[1])
	const flood = 40 // fewer than limits.envelopes_per_address lets pass at once
	for range flood {
		wire.send(bad.frame)
	}
	until(t, bad.counter, func() bool { return r.drops()[bad.counter] == flood })
	told := func() (lines []string) {
		r.notes.Lock()
		defer r.notes.Unlock()
		for _, l := range r.notes.lines {
			if strings.Contains(l, "envelope refused") {
				lines = append(lines, l)
			}
		}
		return lines
	}
	until(t, "a line", func() bool { return len(told()) > 0 })
	lines := told()
	if len(lines) > 2 { // two if it took longer than the interval
		t.Errorf("%d lines for %d envelopes: %q", len(lines), flood, lines)
	}
	sender := r.hosts[1].ip.String()
	for _, want := range []string{"bad_mac", "key of id 1", r.group.String(), sender, "port", "suppressed"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%q does not name %q", lines[0], want)
		}
	}
	es, err := r.engine.Events(canceled(), 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range es.Events {
		if e.Kind == api.EventRejected && e.Group == r.group && e.Member == r.hosts[1].ip && strings.Contains(e.Reason, "bad_mac") && strings.Contains(e.Reason, sender) {
			n++
		}
	}
	if n == 0 || n > 2 {
		t.Error(fmt.Sprintf("%d events name the sender:", n), es.Events)
	}
}

// The first answer to a host that the switch has no neighbour entry for is sent, once
// the entry is there: a request that is sent once is answered.
func TestFirstAnswerWaitsForTheNeighbour(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	list := newForger(r).envelopes()
	ask := list[slices.IndexFunc(list, func(h hostile) bool { return h.name == "of another life of the switch" })]
	nl := r.star.Switch.Handle()
	entries, err := nl.NeighList(0, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if a, _ := netip.AddrFromSlice(entries[i].IP); a.Unmap() == r.hosts[1].ip {
			if err := nl.NeighDel(&entries[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	wire := newTap(t, r.star.Hosts[1])
	wire.send(ask.frame)
	wire.expect("an answer", func(f *captured) bool {
		return f.UDP() != nil && f.Src() == r.group && f.Dst() == r.hosts[1].ip && f.UDP().SrcPort() == envelope.DefaultPort
	})
}
