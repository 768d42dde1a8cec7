// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// A host whose address is in a group prefix, which the switch does not know before, is found by what
// the guard drops.
func TestHostInGroupPrefix(t *testing.T) {
	w := newWard(t, "")
	const text = "port p2: the port guard drops frames from addresses in group_prefixes"
	w.sh(t, "at host 10.77.0.2", "ip address add 10.77.254.7/16 dev eth0")
	err := w.Hosts[1].NS.Do(func() error { // an ARP request from that address comes before the packet
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IP{10, 77, 254, 7}}, &net.UDPAddr{IP: net.IP{10, 77, 0, 99}, Port: 9})
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("hello"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var found []Finding
	for len(found) == 0 {
		r := w.look(t)
		checked(t, r)
		found = findings(r, checks.CheckPortGuard, text)
		select {
		case <-ctx.Done():
			t.Fatalf("%+v", r.Findings)
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, want := range []string{" drop_guard_arp", w.Hosts[1].MAC.String() + " (", "10.77.0.2", "a host has an address within group_prefixes, or somebody attacks"} {
		if !strings.Contains(found[0].Text, want) {
			t.Errorf("it does not say %q: %s", want, found[0].Text)
		}
	}
	if found[0].Severity != Error || found[0].Cost == "" || !strings.HasPrefix(found[0].Remedy, "group_prefixes in which no host has an address") {
		t.Errorf("%+v", found[0])
	}
}

// Announcements of the switch that come back by a link that its bridge blocks are no finding, what was
// dropped long ago neither; those that come back by another link are named for what they are.
func TestGuardedPorts(t *testing.T) {
	now := time.Now()
	port := func(blocked bool, mac, reason string, at time.Time) []api.Port {
		return []api.Port{{Name: "p1", MAC: "a"}, {
			Name: "p2", MAC: "b", Blocked: blocked,
			XDP: map[string]uint64{reason: 3}, Guard: map[string]api.GuardDrop{reason: {MAC: mac, Time: at}},
		}}
	}
	for _, c := range []struct {
		name     string
		ports    []api.Port
		severity Severity
		text     string
	}{
		{"a host", port(false, "c", "drop_guard_arp", now), Error, "(3 drop_guard_arp), the last from c"},
		{"a host, by IPv6", port(false, "c", "drop_guard_nd", now), Error, "(3 drop_guard_nd), the last from c"},
		{"behind a blocked port", port(true, "c", "drop_guard_arp", now), Error, "(3 drop_guard_arp)"},
		{"its own", port(false, "a", "drop_guard_arp", now), Warning, "has the MAC address of a port of this switch"},
		{"its own, blocked", port(true, "a", "drop_guard_arp", now), "", ""},
		{"long ago", port(false, "c", "drop_guard_arp", now.Add(-2*watch.Lately)), "", ""},
		{"another reason", port(false, "c", "drop_allow_mac", now), "", ""},
		{"nothing", port(false, "c", "pass_other", time.Time{}), "", ""},
	} {
		var o checks.Outcome
		checks.CheckGuards(&o, guarded(c.ports, now))
		r := &Report{}
		r.take(&o)
		switch {
		case c.text == "" && len(r.Findings) > 0:
			t.Errorf("%s: %+v", c.name, r.Findings)
		case c.text != "" && (len(r.Findings) != 1 || r.Findings[0].Severity != c.severity || r.Findings[0].Port != "p2" || !strings.Contains(r.Findings[0].Text, c.text)):
			t.Errorf("%s: %+v", c.name, r.Findings)
		}
	}
}
