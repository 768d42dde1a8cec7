// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"maps"
	"net/netip"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/store"
	"github.com/gleam-rdma/gleam/mcast"
)

// manyGroup is the address of group n of a test with many groups.
func manyGroup(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 78, byte(n >> 8), byte(n)})
}

// manyPrefix is the configuration that has these addresses.
const manyPrefix = "group_prefixes: [10.78.0.0/16]\nlimits: {groups: 16384}\n"

// registerMany has masters register groups by envelopes, from first on, each with members at the first hosts.
func (f *fakeSwitch) registerMany(first, groups, members int) {
	f.t.Helper()
	for n := first; n < first+groups; n++ {
		head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: manyGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
		body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: members, Lease: 10 * time.Minute}
		var all []envelope.MemberRecord
		for i := range members {
			m := f.record(i, api.QPN(0x100+n))
			all = append(all, record(&m))
		}
		const segment = 32 // members
		head.Total = uint16((members + segment - 1) / segment)
		for body.Members = range slices.Chunk(all, segment) {
			if head.Seq == 0 {
				head.Instance, head.Epoch = f.challenge(head, &envelope.Register{GroupBody: body})
				head.Epoch++
			}
			f.give(head, &envelope.Register{GroupBody: body}, func() { f.left = nil })
			head.Seq++
		}
	}
}

// TestMemoryOfAGroup: the memory of an idle group that a master has registered is bounded, after garbage
// collection, also of one that is kept over a restart. The bounds are a tenth above what is measured. With -v, the test
// says which packages have allocated it.
func TestMemoryOfAGroup(t *testing.T) {
	if text, err := os.ReadFile("../../docs/SIZING.md"); err != nil || !strings.Contains(string(text), "(2500 + 370 × members)") || keptBytes(1) != 2500+370 {
		t.Errorf("SIZING.md has another arithmetic: %v", err)
	}
	for _, c := range []struct {
		members      int
		kept         bool
		bytes, count uint64
	}{{4, false, 3510, 13}, {16, false, 7340, 13}, {4, true, keptBytes(4), 17}, {16, true, keptBytes(16), 17}, {1024, true, keptBytes(1024), 200}} {
		bytes, count := memoryOfAGroup(t, c.members, c.kept)
		for try := 0; try < 2 && (bytes > c.bytes || count > c.count); try++ { // what earlier tests have left ends meanwhile
			bytes, count = memoryOfAGroup(t, c.members, c.kept)
		}
		if bytes > c.bytes || count > c.count {
			t.Errorf("a group of %d members, kept %t, takes %d bytes in %d objects, more than %d in %d", c.members, c.kept, bytes, count, c.bytes, c.count)
		}
	}
}

// keptBytes is the arithmetic of docs/SIZING.md, from which an operator has the limits of groups and members: the heap
// of an idle group that is kept over a restart.
func keptBytes(members int) uint64 { return 2500 + 370*uint64(members) }

// memoryOfAGroup returns the bytes and objects of the heap that a group takes.
func memoryOfAGroup(t *testing.T, members int, kept bool) (bytes, count uint64) {
	warm, groups, profiled := 128, 1024, testing.Verbose()
	if members > 100 {
		warm, groups, profiled = 8, 32, false
	}
	more := ""
	if kept {
		more = "state: " + t.TempDir() + "\n"
	}
	const ports = 16
	f := newFakeSwitchWith(t, min(members, ports), 1, manyPrefix+"psn_probe: 1ms\nenvelope: {insecure: true}\n"+more)
	for i := ports; i < members; i++ {
		f.locator.set(i, i%ports+1, byte(i), nil)
	}
	f.control.do(func() {
		f.control.dir.hosts.FollowKernel(true)
		f.know(members)
	})
	f.registerMany(0, warm, members)
	if rate := runtime.MemProfileRate; profiled {
		runtime.MemProfileRate = 1
		defer func() { runtime.MemProfileRate = rate }()
	}
	flush := func() {
		if k := f.control.keeper.Keeper; k != nil {
			if err := k.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush()
	bytes, count = heapInUse()
	rooms := heapByPackage()
	f.registerMany(warm, groups, members)
	if n, err := f.Groups(nil); err != nil || len(n) != warm+groups {
		t.Fatalf("%d groups, %v", len(n), err)
	}
	f.log = nil // the log of the test
	f.control.do(func() {
		// What is to be announced is no memory of idle groups, and the journal is bounded.
		*f.control.departures.announcer, f.control.journal = *newAnnouncer(), store.NewJournal()
	})
	flush()
	bytesNow, countNow := heapInUse()
	bytes, count = (bytesNow-bytes)/uint64(groups), (countNow-count)/uint64(groups)
	t.Logf("a group of %d members, kept %t: %d bytes in %d objects", members, kept, bytes, count)
	if profiled {
		now := heapByPackage()
		for room, x := range now {
			now[room] = inUse{x.bytes - rooms[room].bytes, x.objects - rooms[room].objects}
		}
		for _, room := range slices.SortedFunc(maps.Keys(now), func(a, b string) int { return cmp.Compare(now[b].bytes, now[a].bytes) }) {
			if x := now[room]; x.bytes >= int64(8*groups) {
				t.Logf("%8d bytes %6.1f objects  %s", x.bytes/int64(groups), float64(x.objects)/float64(groups), room)
			}
		}
	}
	f.stop()
	return bytes, count
}

// heapInUse returns the bytes and objects of the heap after garbage collection.
func heapInUse() (bytes, objects uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.HeapObjects
}

// inUse is memory in use.
type inUse struct{ bytes, objects int64 }

// heapByPackage returns the memory in use by the package, and the function, that has allocated it.
func heapByPackage() map[string]inUse {
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, n+100)
	n, _ = runtime.MemProfile(records, false)
	m := make(map[string]inUse)
	for i := range records[:n] {
		r := &records[i]
		frames := runtime.CallersFrames(r.Stack())
		for {
			at, more := frames.Next()
			if name, ours := strings.CutPrefix(at.Function, "github.com/gleam-rdma/gleam/"); ours || !more {
				room := path.Join(path.Dir(name), strings.SplitN(path.Base(name), ".", 2)[0])
				for _, room := range []string{name, room + ", all"} {
					x := m[room]
					m[room] = inUse{x.bytes + r.InUseBytes(), x.objects + r.InUseObjects()}
				}
				break
			}
		}
	}
	return m
}
