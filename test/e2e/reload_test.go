// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
)

// reload applies another text of the configuration, as gleamd does.
func (r *rig) reload(text string, force bool) (lost control.Lost, err error) {
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
		if lost, err := r.reload(c.text, false); err != nil || lost.Members != 0 {
			t.Fatalf("step %d: %+v lost, %v", i, lost, err)
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
	if gs, err := r.engine.Groups(nil); err != nil || len(gs) != 2 {
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
	if err != nil || lost.Members != 1 || len(r.ports()) != 2 {
		t.Fatalf("by force: %+v lost, %v, %d ports", lost, err, len(r.ports()))
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

// In the middle of a transfer a reload adds a group prefix: its groups register at once, and
// the transfer completes, byte-equal, without a storm of NAKs. A prefix that would have a member's
// address is refused, and so is the removal of one that a group is in. By force that group
// ends, with the reason, and no other one.
func TestReloadOfPrefixes(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 2 << 20})
	r.join()
	r.fill(0)
	base, list := r.text, "  - "+lab.StarGroupsIPv4.String()+"\n"
	with := func(prefix string) string { return strings.Replace(base, list, list+"  - "+prefix+"\n", 1) }
	fresh := netip.MustParseAddr("10.77.253.7")
	o := r.another(fresh, 0, 1)
	if err := r.engine.Register(&api.Register{Group: fresh, QPN: 0x4711, PMTU: 1024, Policy: "strict", Members: []api.RegisterMember{{IP: r.hosts[0].IPv4, QPN: 0x11}, {IP: r.hosts[1].IPv4, QPN: 0x12}}}); err == nil || !strings.Contains(err.Error(), "not a group prefix") {
		t.Fatalf("a group in no prefix: %v", err)
	}
	before := r.stats().Rx
	n := r.post(0, 50_000)
	until(t, "the transfer begins", func() bool { return r.stats().Rx > before+100 })
	for _, bad := range []string{r.hosts[1].IPv4.String() + "/32", "10.77.0.0/24"} {
		if _, err := r.reload(with(bad), true); err == nil || !strings.Contains(err.Error(), "group_prefixes: ") || !strings.Contains(err.Error(), "a member of group") {
			t.Fatalf("%s: %v", bad, err)
		}
	}
	for range 2 { // the second time nothing changes
		if lost, err := r.reload(with("10.77.253.0/24"), false); err != nil || lost.Members+len(lost.Groups) != 0 {
			t.Fatalf("%+v, %v", lost, err)
		}
	}
	o.join()
	o.fill(0)
	m := o.post(0, 50_000)
	o.complete(o.hosts[0], m)
	o.same(0)
	r.complete(r.hosts[0], n)
	r.same(0)
	for _, x := range []*rig{r, o} {
		if s := x.hosts[0].qp.Stats(); s.NAKs > 8 { // some packets may be lost on a busy machine
			t.Errorf("group %s has lost many packets: its source %+v", x.group, s)
		}
	}

	_, err := r.reload(base, false)
	if err == nil || !strings.Contains(err.Error(), "1 groups are in none of these prefixes: 10.77.253.7: ") || !strings.Contains(err.Error(), "--force") {
		t.Fatalf("a prefix with a group is removed: %v", err)
	}
	o.fill(1)
	o.write(1, 50_000)
	if lost, err := r.reload(base, true); err != nil || len(lost.Groups) != 1 || lost.Groups[0] != fresh {
		t.Fatalf("by force: %+v, %v", lost, err)
	}
	if gs, err := r.engine.Groups(nil); err != nil || len(gs) != 1 || gs[0].IP != r.group {
		t.Fatalf("groups %+v, %v", gs, err)
	}
	if gs, err := r.engine.EndedGroups(); err != nil || len(gs) != 1 || gs[0].Ended.Reason != envelope.Withdrawn.String() {
		t.Errorf("ended groups %+v, %v", gs, err)
	}
	r.fill(1)
	r.write(1, 50_000)
	r.same(1)
}

// In the middle of a transfer a reload binds other receive queues of all ports: they are
// opened again, members stay, and the transfer completes, byte-equal. A queue that the
// interface does not have is refused, and changes nothing.
func TestReloadOfQueues(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3, Queues: 2}, memory: 4 << 20})
	r.join()
	r.fill(0)
	base := r.text
	with := func(queues string) string {
		return strings.ReplaceAll(base, "  - name: p", "  - queues: "+queues+"\n    name: p")
	}
	before := r.stats().Rx
	n := r.post(0, 50_000)
	until(t, "the transfer begins", func() bool { return r.stats().Rx > before+100 })
	if _, err := r.reload(with("[0, 7]"), false); err == nil || !strings.Contains(err.Error(), "queue 7: the interface uses") {
		t.Fatalf("a queue that does not exist: %v", err)
	}
	reopened := func(times uint64) {
		t.Helper()
		until(t, "all ports are opened again", func() bool {
			for _, p := range r.ports() {
				if p.State != api.PortOpen || !p.Up || p.Reopened != times || p.Queues != 2 {
					return false
				}
			}
			return true
		})
	}
	reopened(0)
	for i, queues := range []string{"[1, 0]", "[1, 0]", "all"} {
		if lost, err := r.reload(with(queues), false); err != nil || lost.Members != 0 {
			t.Fatalf("queues %s: %+v, %v", queues, lost, err)
		}
		reopened([]uint64{1, 1, 2}[i])
	}
	for _, queues := range []string{"[0, 1]", "[1, 0]"} { // the second one while ports are being opened
		if _, err := r.reload(with(queues), false); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all ports have the last queues", func() bool {
		for _, p := range r.ports() {
			if p.State != api.PortOpen || !p.Up || p.Reopened < 3 {
				return false
			}
		}
		return true
	})
	r.complete(r.hosts[0], n)
	r.same(0)
	r.fill(1)
	r.write(1, 50_000)
	r.same(1)
}

// In the middle of a transfer a reload gives a port another XDP mode: it is opened again, members
// stay, and the transfer completes, byte-equal.
func TestReloadOfXDPMode(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 4 << 20})
	r.join()
	r.fill(0)
	base := r.text
	with := func(mode string) string {
		return strings.Replace(base, "  - name: p2", "  - xdp: {mode: "+mode+"}\n    name: p2", 1)
	}
	before := r.stats().Rx
	n := r.post(0, 50_000)
	until(t, "the transfer begins", func() bool { return r.stats().Rx > before+100 })
	for i, mode := range []string{"generic", "native", "generic", "auto"} {
		if lost, err := r.reload(with(mode), false); err != nil || lost.Members != 0 {
			t.Fatalf("mode %s: %+v, %v", mode, lost, err)
		}
		want := mode
		if mode == "auto" {
			want = "native"
		}
		until(t, "p2 runs in mode "+mode, func() bool {
			for _, p := range r.ports() {
				if p.State != api.PortOpen || !p.Up {
					return false
				}
				if p.Name == "p2" && (p.XDPMode != want || p.Reopened != uint64(i+1)) || p.Name != "p2" && (p.XDPMode != "native" || p.Reopened != 0) {
					return false
				}
			}
			return true
		})
	}
	r.complete(r.hosts[0], n)
	r.same(0)
}
