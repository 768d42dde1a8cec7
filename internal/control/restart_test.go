// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// restartConfig is the configuration of a switch that starts with groups of writeGroups.
func restartConfig(groups int) string {
	return fmt.Sprintf("psn_probe: 1ms\nenvelope: {insecure: true}\ngroup_prefixes: [10.80.0.0/12]\nlimits: {groups: %d, members_per_group: 1024}\n", groups)
}

// fileGroup returns group n of a state file, with members at hosts.
func fileGroup(n, members int, host func(int) netip.Addr) *statefile.Group {
	g := &statefile.Group{Transaction: 1, Digests: make([][32]byte, 1), RegisteredAt: time.Now().Truncate(time.Millisecond), Registration: envelope.Registration{
		Group: netip.AddrFrom4([4]byte{10, 80 + byte(n>>16), byte(n >> 8), byte(n)}), Epoch: 1, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024},
		Lease: 10 * time.Minute, Master: netip.AddrPortFrom(host(0), 4797),
	}}
	for i := range members {
		m := envelope.MemberRecord{IP: host(i), QPN: rocev2.QPN(0x100 + n), SQPSN: 1, RQPSN: 1}
		g.Registration.Members, g.Joined = append(g.Registration.Members, m), append(g.Joined, 1)
	}
	return g
}

// putHost adds a host at a port of the switch to change.
func putHost(change *statefile.Change, ip netip.Addr, port int) {
	at := statefile.Location{Port: fmt.Sprintf("f%d", port), MAC: [6]byte{2, 0, 0, 0, 0, byte(port)}, Hop: ip}
	change.PutHost(ip, &statefile.Host{Pinned: at, Locations: map[envelope.KeyID]statefile.Location{0: at}})
}

// writeGroups writes the state file of a switch whose groups have members at the first hosts.
func writeGroups(t testing.TB, path string, groups, members int) {
	x, _, err := statefile.Open(path, statefile.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var change statefile.Change
	for i := range members {
		putHost(&change, fakeHost(i), i)
	}
	for n := range groups {
		change.PutGroup(fileGroup(n, members, fakeHost))
		if n%1000 == 999 {
			x.Append(&change)
			change = statefile.Change{}
		}
	}
	x.Append(&change)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredGroupTooLarge: a group for which the switch that starts has too little packet memory is reported, and is
// in neither the registrar nor the file; those that are taken up with it are served.
func TestRestoredGroupTooLarge(t *testing.T) {
	const groups, large, members = 5, 2, 600
	dir := t.TempDir()
	x, _, err := statefile.Open(filepath.Join(dir, "groups"), statefile.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var change statefile.Change
	host := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i + 1)}) }
	for i := range members {
		putHost(&change, host(i), 0)
	}
	for n := range groups {
		change.PutGroup(fileGroup(n, map[bool]int{true: members, false: 3}[n == large], host))
	}
	x.Append(&change)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	f := newFakeSwitchWith(t, 2, 1, restartConfig(groups)+"state: "+dir+"\n", func(f *fakeSwitch) {
		for i := range members {
			f.locator.at[host(i)] = f.locator.at[fakeHost(0)]
			at := f.locator.at[host(i)]
			at.Hop = host(i)
			f.locator.at[host(i)] = at
		}
	})
	f.control.do(func() {
		d, ip := f.control.dir, fileGroup(large, 3, host).Registration.Group
		if len(d.groups) != groups-1 || d.groups[ip] != nil || len(d.freeIDs) != 1 || d.byID[d.freeIDs[0]] != nil {
			t.Errorf("%d groups, IDs %v are free", len(d.groups), d.freeIDs)
		}
		if _, _, known := f.control.registrar.Group(ip); known {
			t.Error("the registrar has the group")
		}
		for _, g := range d.groups {
			if d.byID[g.id] != g || g.reg != f.control.registrar.Registration(g.reg.Group) || len(g.slots) != 3 || !g.slots[2].joined {
				t.Errorf("group %v: %+v", g.reg.Group, g)
			}
		}
	})
	if err := f.control.keeper.Flush(); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	if n := len(f.warnings); n != 1 || !strings.Contains(f.warnings[0], "600 receivers at once") || !strings.Contains(f.warnings[0], "raise umem.frames") {
		t.Errorf("warnings %q", f.warnings)
	}
	f.mu.Unlock()
	f.end()
	y, found, err := statefile.Open(filepath.Join(dir, "groups"), statefile.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if n := len(found.State.Groups); n != groups-1 {
		t.Errorf("%d groups are in the file", n)
	}
}

// TestRestartGrowsByTheGroups: the groups beyond the first 1,000 cost a start from the state file a bounded number of
// allocations each, up to 10,000 of them: a wait for the worker would be three. In the part for timing, a group among
// 10,000 takes no more than twice the CPU time of one among 1,000.
func TestRestartGrowsByTheGroups(t *testing.T) {
	const few, many, bound = 1000, 10_000, 58
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes time by the memory in use
	start := func(groups int) (objects uint64, cpu time.Duration) {
		dir := t.TempDir()
		writeGroups(t, filepath.Join(dir, "groups"), groups, 4)
		for range 3 {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			began := cpuTime(t)
			f := newFakeSwitchWith(t, 4, 1, restartConfig(groups)+"state: "+dir+"\n")
			f.control.do(func() {}) // after the groups
			took := cpuTime(t) - began
			runtime.ReadMemStats(&after)
			f.end()
			if n := len(f.control.dir.groups); n != groups {
				t.Fatalf("%d groups of %d", n, groups)
			}
			if n := after.Mallocs - before.Mallocs; objects == 0 || n < objects {
				objects = n
			}
			if cpu == 0 || took < cpu {
				cpu = took
			}
		}
		return objects, cpu / time.Duration(groups)
	}
	objects, cpu := start(few)
	moreObjects, moreCPU := start(many)
	each := float64(moreObjects-objects) / (many - few)
	t.Logf("%.1f objects for each group; %v of CPU time among %d, %v among %d", each, cpu, few, moreCPU, many)
	if each > bound {
		t.Errorf("each group takes %.1f objects, more than %d", each, bound)
	}
	if labtest.InPart("timing") && moreCPU > 2*cpu {
		t.Errorf("a group takes %v among %d, %v among %d", cpu, few, moreCPU, many)
	}
}
