// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/tools/lab"
)

// reload applies another text of the configuration, as gleamd does.
func (r *rig) reload(text string, force bool) (lost int, err error) {
	r.t.Helper()
	next, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	if lost, err = r.engine.Reconfigure(r.cfg, next, force); err == nil {
		r.cfg = next
	}
	return lost, err
}

// In the middle of a transfer a reload changes rate, queue and marking of a port that the
// group uses, adds a port and removes it again, and lowers limits: the transfer completes,
// byte-equal, and so does the other group's, without a NAK. What is beyond a lowered limit
// stays; more is refused.
func TestReloadDuringATransfer(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: 2 << 20, prepare: func(s *lab.Star, text string) string {
		return strings.Replace(text, "  - name: p4\n", "", 1)
	}})
	r.hosts = r.hosts[:3]
	r.join()
	o := r.another(otherGroup, 0, 1)
	o.join()
	r.fill(0)
	copy(o.hosts[0].mr.Bytes(), r.hosts[0].mr.Bytes())
	before := r.stats().Rx
	n, m := r.post(0, 50_000), o.post(0, 50_000)
	until(t, "the transfers begin", func() bool { return r.stats().Rx > before+100 })

	base := r.text
	limits := "\nlimits: {groups: 1, naks_per_port: 50000, envelopes_per_port: 100, source_timeout: 3s}\n"
	for i, c := range []struct{ text, state string }{
		{strings.Replace(base, "name: p3\n", "name: p3\n    rate: 200mbit\n    queue: 65536\n    ecn: off\n", 1), "p1 p2 p3"},
		{strings.Replace(base, "  - name: p3\n", "  - name: p3\n  - name: p4\n", 1) + limits, "p1 p2 p3 p4"},
		{base + limits, "p1 p2 p3"},
		{base + limits, "p1 p2 p3"}, // the same again
		{strings.Replace(base, "name: p3\n", "name: p3\n    rate: 100mbit\n", 1) + limits, "p1 p2 p3"},
		{base + limits, "p1 p2 p3"},
	} {
		if lost, err := r.reload(c.text, false); err != nil || lost != 0 {
			t.Fatalf("step %d: %d members lost, %v", i, lost, err)
		}
		var names []string
		for _, p := range r.ports() {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != c.state {
			t.Errorf("step %d: ports %s, want %s", i, got, c.state)
		}
		if p := r.ports()[2]; i == 0 && (p.Rate != 200e6 || p.Egress.MaxBytes != 65536 || p.Egress.ECNKMax != 0) || i > 4 && p.Rate != 0 {
			t.Errorf("step %d: %+v", i, p)
		}
	}
	o.complete(o.hosts[0], m)
	r.complete(r.hosts[0], n)
	r.same(0)
	o.same(0)
	if s := o.hosts[0].qp.Stats(); s.NAKs > 0 {
		t.Errorf("the other group has lost packets: its source %+v", s)
	}
	third := r.another(group6.Next(), 0, 1)
	third.group = otherGroup.Next()
	third.connect()
	if err := r.engine.Register(third.registration()); err == nil || !strings.Contains(err.Error(), "1") {
		t.Errorf("a group beyond the lowered limit: %v", err)
	}
	if gs, err := r.engine.Groups(); err != nil || len(gs) != 2 {
		t.Errorf("%d groups, %v", len(gs), err)
	}
}

// A port with members is not removed by mistake: the reload is refused, says how many
// members that concerns, and changes nothing. By force the port goes, and comes again with
// the next reload: the members have their location again, and no group was registered anew.
func TestReloadRemovesAPortWithMembers(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 1 << 20})
	r.join()
	o := r.another(otherGroup, 0, 1)
	o.join()
	base := r.text
	without := strings.Replace(strings.Replace(base, "  - name: p3\n", "", 1), "name: p1\n", "name: p1\n    rate: 10mbit\n", 1)
	_, err := r.reload(without, false)
	if err == nil || !strings.Contains(err.Error(), "ports[p3]: 1 members of 1 groups") || !strings.Contains(err.Error(), "--force") {
		t.Fatalf("a port with a member is removed: %v", err)
	}
	if ps := r.ports(); len(ps) != 3 || ps[0].Rate != 0 {
		t.Fatalf("a refused reload has changed something: %+v", ps)
	}
	missing := strings.Replace(without, "  - name: p2\n", "  - name: p2\n  - name: nosuch\n", 1)
	if _, err := r.reload(missing, true); err == nil || !strings.Contains(err.Error(), "ports[nosuch]: ") {
		t.Fatalf("a port without an interface: %v", err)
	}
	if ps := r.ports(); len(ps) != 3 || ps[0].Rate != 0 {
		t.Fatalf("a reload with an error has changed something: %+v", ps)
	}
	lost, err := r.reload(without, true)
	if err != nil || lost != 1 || len(r.ports()) != 2 {
		t.Fatalf("by force: %d members lost, %v, %d ports", lost, err, len(r.ports()))
	}
	if _, err := r.reload(base, false); err != nil {
		t.Fatal(err)
	}
	for range 6 { // programs of removed ports serve others
		if _, err := r.reload(without, true); err != nil {
			t.Fatal(err)
		}
		o.fill(0)
		o.write(0, 50_000)
		o.same(0)
		if _, err := r.reload(base, false); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the port is up", func() bool { ps := r.ports(); return len(ps) == 3 && ps[2].Up })
	r.fill(0)
	r.write(0, 50_000)
	r.same(0)
}
