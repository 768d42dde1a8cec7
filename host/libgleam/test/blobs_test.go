// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// flags of gleam.h.
const (
	receiveOnly = 8
	withTargets = 64
)

// carrier starts a process of carrier.c.
func (w *world) carrier(t *testing.T, i int, args ...string) *participant {
	t.Helper()
	return w.startProgram(t, "carrier", i, args...)
}

func (x *participant) blob(command string) string {
	x.t.Helper()
	x.do(command)
	return strings.TrimPrefix(x.expect("blob "), "blob ")
}

func (x *participant) does(command string) {
	x.t.Helper()
	x.do(command)
	x.expect("ok " + strings.Fields(command)[0])
}

// joinByBlobs takes all through the steps; the first is the master. Each has a number of threads.
func joinByBlobs(t *testing.T, group string, all []*participant, threads int) {
	t.Helper()
	for _, x := range all {
		own := x.blob("export")
		all[0].does("import " + own) // the master's own does nothing
	}
	described := all[0].blob("describe")
	for _, x := range all[1:] {
		x.does("import " + described)
	}
	for i := range all { // the master is the last
		x := all[len(all)-1-i]
		x.do("peer")
		x.expect("peer " + group + " 0x676c6d 1024")
		x.does("connected")
	}
	for _, x := range all {
		x.expect("event joined |")
		x.do("window")
		x.expect(fmt.Sprintf("window 0x5000000 1048576 %d members, %d threads", len(all), threads))
	}
}

// TestBlobs: groups without an exchange and without threads. Two groups have their members
// at the same hosts, each in a process of its own; one goes on over several leases, and
// changes its members while it does.
func TestBlobs(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) {
			w := newWorld(t, 4)
			groups := []string{"10.77.254.1", "10.77.254.2"}
			if v6 {
				groups = []string{"fd77::6c65:1", "fd77::6c65:2"}
			}
			var members [2][]*participant
			for k, group := range groups {
				all := []*participant{w.carrier(t, 0, "master", w.ip(0, v6), fmt.Sprint(0x20+16*k), rightKey, group, "2", fmt.Sprint(withTargets))}
				for i := 1; i < 3; i++ {
					all = append(all, w.carrier(t, i, "member", w.ip(i, v6), fmt.Sprint(0x20+16*k+i), rightKey, fmt.Sprint(receiveOnly*(i/2))))
				}
				joinByBlobs(t, group, all, 1)
				members[k] = all
			}
			g, err := w.client.Group(t.Context(), netip.MustParseAddr(groups[0]))
			if err != nil || len(g.Members) != 3 || g.Members[2].Role != "receive-only" || g.Members[1].Role == "receive-only" || g.Policy != "evict" {
				t.Fatalf("of three members the last receives only, under evict: %+v, %v", g, err)
			}

			a, b := members[0], members[1]
			a[1].do("targets " + w.ip(2, v6))
			a[1].expect("rkey set payload 4754010", strings.TrimPrefix(fmt.Sprintf("%x", netip.MustParseAddr(w.ip(2, v6)).AsSlice())+"112233445566778800000099", " "))

			// A member leaves. One more joins, while the group is there; its blob goes the same way.
			a[1].does("leave")
			a[1].expect("event ended |", "left")
			a[0].expect("event left "+w.ip(1, v6)+"|", "left")
			x := w.carrier(t, 3, "member", w.ip(3, v6), "0x44", rightKey, "0")
			a[0].does("import " + x.blob("export"))
			x.does("import " + a[0].blob("describe"))
			x.does("connected")
			a[0].does("update 10000")
			a[0].expect("event updated |")
			x.expect("event joined |")

			// A newcomer that does not come after all is forgotten: the next update is without it.
			a[0].does("import " + w.carrier(t, 1, "member", w.ip(1, v6), "0x45", rightKey, "0").blob("export"))
			a[0].does("remove " + w.ip(1, v6))
			a[0].do("remove " + w.ip(1, v6))
			a[0].expect("error remove -22 ", "is not a member")

			// The one that left comes back with a restarted queue pair; another is removed.
			a[1].do("psn 0x777")
			a[0].does("import " + a[1].blob("export"))
			a[1].does("import " + a[0].blob("describe"))
			a[1].does("connected")
			a[0].does("update")
			a[0].expect("event updated |")
			a[1].expect("event joined |")
			a[0].does("remove " + w.ip(2, v6))
			a[0].expect("event left "+w.ip(2, v6)+"|", "removed by the master")
			a[2].expect("event ended |", "removed by the master")

			b[0].silent(2500 * time.Millisecond) // more than a lease: it has not ended
			for i := range 2 {
				g, err := w.client.Group(t.Context(), netip.MustParseAddr(groups[i]))
				if err != nil || len(g.Members) != 3 {
					t.Fatalf("after more than a lease: %+v, %v", g, err)
				}
			}
			a[0].does("leave 0")
			a[0].expect("event ended |", "deleted")
			b[0].does("leave")
			for _, x := range []*participant{a[1], x, b[0], b[1], b[2]} {
				x.expect("event ended |", "deleted")
			}
			for _, x := range append(append(a, b...), x) {
				x.end()
			}
		})
	}
}

// TestBlobFailures: what is wrong with a blob, or with the order, is said.
func TestBlobFailures(t *testing.T) {
	w := newWorld(t, 2)
	m := w.carrier(t, 0, "master", w.ip(0, false), "0x20", rightKey, "10.77.254.1", "1", "0")
	x := w.carrier(t, 1, "member", w.ip(1, false), "0x21", rightKey, "0")
	other := w.carrier(t, 1, "member", w.ip(1, false), "0x21", wrongKey, "0")
	fails := func(x *participant, command, number string, parts ...string) {
		t.Helper()
		x.do(command)
		x.expect("error "+strings.Fields(command)[0]+" "+number+" ", parts...)
	}
	fails(m, "describe", "-22", "out of order")
	fails(x, "peer", "-22", "not known yet")
	fails(x, "targets 10.0.0.1", "-22", "GLEAM_TARGETS")
	fails(x, "update", "-22", "only the master")
	fails(x, "leave", "-22", "join first")
	fails(x, "connected", "-22", "join first")
	own, theirs := m.blob("export"), x.blob("export")
	fails(m, "export", "-22", "a join is going on")
	fails(m, "describe", "-22", "0 of 1 members have been imported")
	fails(m, "connected", "-22", "gleam_describe() first")
	fails(x, "connected", "-22", "gleam_import() the group first")
	fails(m, "import 00", "-22", "no blob")
	fails(m, "import "+theirs[:100], "-22", "damaged")
	fails(m, "import "+strings.Replace(theirs, theirs[40:44], "ffff", 1), "-22", "damaged, or its host has another key")
	fails(m, "import "+other.blob("export"), "-22", "another key under this id")
	fails(x, "import "+own, "-22", "a master takes those of gleam_export()")
	m.does("import " + theirs)
	fails(m, "update", "-22", "not registered")
	described := m.blob("describe")
	fails(m, "import "+theirs, "-22", "before gleam_describe()")
	x.does("import " + described)
	fails(x, "import "+described, "-22", "known already")

	// The master registers before the member is connected: the member says no, and it is told.
	m.does("connected")
	m.expect("event failed |", "has not joined the group", "10.77.0.2")
	x.does("connected")
	x.does("leave") // gives up
	x.expect("event failed |", "it left before the group was registered")
	for _, p := range []*participant{m, x, other} {
		p.end()
	}
}
