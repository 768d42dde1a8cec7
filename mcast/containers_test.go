// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The containers of a switch, compared with simple ones over long random runs.

// TestAddrIndexIsASet: values whose hashes collide are found as long as they are there.
// At most half of the slots are in use.
func TestAddrIndexIsASet(t *testing.T) {
	for _, spread := range []uint64{1, 3, 8, 1 << 20} {
		rng := random(spread)
		hash := func(v uint16) uint64 { return uint64(v) * 0x9E37 % spread }
		var x addrIndex[uint16]
		in := map[uint16]bool{}
		for step := range 4000 {
			v := uint16(rng(60))
			if step%1000 > 800 { // the index becomes empty again
				x.remove(hash(v), v, hash)
				delete(in, v)
			} else if in[v] {
				x.remove(hash(v), v, hash)
				delete(in, v)
			} else if rng(3) > 0 {
				x.put(hash(v), v, hash)
				in[v] = true
			} else {
				x.remove(hash(v), v, hash) // is not there
			}
			n := 0
			for _, slot := range x.slots {
				if slot != 0 {
					n++
				}
			}
			if n != len(in) || int(x.used) != n || 2*n > len(x.slots) || len(x.slots)&(len(x.slots)-1) != 0 {
				t.Fatalf("%d values, used %d, in %d of %d slots", len(in), x.used, n, len(x.slots))
			}
			for v := range in {
				mask := uint64(len(x.slots) - 1)
				for i := hash(v) & mask; x.slots[i] != v+1; i = (i + 1) & mask {
					if x.slots[i] == 0 {
						t.Fatalf("hashes below %d: %d is not found in %v", spread, v, x.slots)
					}
				}
			}
		}
		if len(x.slots) > 4*60 {
			t.Errorf("hashes below %d: %d slots for up to 60 values", spread, len(x.slots))
		}
	}
}

// TestPoolGivesZeros: a slice from a pool has the length that was asked for, and nothing
// but zeros. A slice that was given back serves the next one of its size.
func TestPoolGivesZeros(t *testing.T) {
	var p pool[int]
	for n := range 70 {
		s := p.get(n)
		if len(s) != n || cap(s) < n || cap(s) > max(1, 2*n) || cap(s)&(cap(s)-1) != 0 {
			t.Fatalf("asked for %d values: %d of %d", n, len(s), cap(s))
		}
		if slices.ContainsFunc(s, func(v int) bool { return v != 0 }) {
			t.Fatalf("asked for %d values: %v", n, s)
		}
		all := s[:cap(s)]
		for i := range all {
			all[i] = i + 1
		}
		p.put(s)
		again := p.get(cap(s))
		if &again[0] != &all[0] {
			t.Errorf("a slice of %d values did not come back", cap(s))
		}
		if slices.ContainsFunc(again, func(v int) bool { return v != 0 }) {
			t.Errorf("a slice of %d values came back with %v", cap(s), again)
		}
		p.put(again)
		if x, y := p.get(cap(s)), p.get(cap(s)); &x[0] == &y[0] {
			t.Errorf("a slice of %d values serves two", cap(s))
		}
	}
	p.put(nil)
	p.put(make([]int, 3, 7)) // of append: the next smaller power of two
	if s := p.get(4); cap(s) != 7 {
		t.Errorf("a slice of 7 values serves none of 4: capacity %d", cap(s))
	}
	if s := p.get(8); len(s) != 8 {
		t.Errorf("asked for 8 values: %d", len(s))
	}
}

// TestPoolResizes: a slice that is resized keeps its values, and the former one serves the
// next of its size.
func TestPoolResizes(t *testing.T) {
	var p pool[int]
	s := p.get(4)
	copy(s, []int{1, 2, 3, 4})
	if r := p.resize(s, 5); !slices.Equal(r, []int{1, 2, 3, 4, 0}) {
		t.Errorf("resized to %v", r)
	}
	if again := p.get(4); &again[0] != &s[0] {
		t.Error("the former slice did not come back")
	}
}

// TestActivesAreAQueue: actives is a queue of any length.
func TestActivesAreAQueue(t *testing.T) {
	rng := random(7)
	var a actives
	var want []GroupID
	for step := range GroupID(3000) {
		if grows := step/500%2 == 0; rng(4) > 0 == grows {
			a.add(step)
			want = append(want, step)
		} else if len(want) > 0 {
			if got := a.next(); got != want[0] {
				t.Fatalf("step %d: %d, want %d", step, got, want[0])
			}
			want = want[1:]
		}
		if a.n != len(want) || len(a.ids)&(len(a.ids)-1) != 0 {
			t.Fatalf("step %d: %d of %d, want %d", step, a.n, len(a.ids), len(want))
		}
	}
}

// TestTimersAreAList: after any timers were armed and stopped, the heap serves in the order
// of a sorted list.
func TestTimersAreAList(t *testing.T) {
	type entry struct {
		at time.Duration
		id GroupID
	}
	for seed := range uint64(8) {
		const groups = 150
		rng := random(seed)
		var h timers
		h.grow(groups - 1)
		var list []entry
		find := func(id GroupID) int { return slices.IndexFunc(list, func(e entry) bool { return e.id == id }) }
		for range 3000 {
			id, at := GroupID(rng(groups)), time.Duration(rng(40)-20)*time.Duration(1+rng(2)*1e9)
			i := find(id)
			switch rng(5) {
			case 0, 1:
				if h.stop(id); i >= 0 {
					list = slices.Delete(list, i, i+1)
				}
			default:
				if h.arm(id, at); i < 0 {
					list = append(list, entry{at, id})
				} else if at < list[i].at {
					list[i].at = at
				}
			}
			for k := 1; k < len(h.heap); k++ {
				if h.heap[k].before(h.heap[(k-1)/4]) {
					t.Fatalf("%+v is below %+v", h.heap[k], h.heap[(k-1)/4])
				}
			}
			for k, x := range h.heap {
				if int(h.heapIndex[x.id]) != k {
					t.Fatalf("group %d is at %d, not %d", x.id, k, h.heapIndex[x.id])
				}
			}
			if len(h.heap) != len(list) {
				t.Fatalf("%d groups wait, want %d", len(h.heap), len(list))
			}
		}
		slices.SortFunc(list, func(a, b entry) int {
			if timer(a).before(timer(b)) {
				return -1
			}
			return 1
		})
		if !slices.IsSortedFunc(list, func(a, b entry) int { return int(a.at-b.at)*1000 + int(a.id) - int(b.id) }) {
			t.Fatalf("before is no order: %v", list)
		}
		var want []GroupID
		for _, e := range list {
			want = append(want, e.id)
		}
		if got := h.expire(1 << 60); !slices.Equal(got, want) {
			t.Fatalf("served %v, want %v", got, want)
		}
		if at, ok := h.first(); ok || at != 0 {
			t.Errorf("the first of none is due at %v", at)
		}
		h.arm(1, 5)
		if h.reset(); len(h.heap) > 0 || h.heapIndex[1] != notWaiting {
			t.Error("a group waits after reset")
		}
	}
}

// TestDeparturesAreAList: recentUntil finds the same as a list of all departures, with
// queues that delay packets, and with pauses of ports that come later. Beyond
// maxDepartures any receiver may be one of those that have left.
func TestDeparturesAreAList(t *testing.T) {
	type left struct {
		group, member uint64
		port          Port
		until         time.Duration
		paused        time.Duration
	}
	for seed := range uint64(6) {
		rng := random(seed)
		s := New(Limits{})
		d := &s.departures
		var list []left
		var overflow, now time.Duration
		ends := func(e left) time.Duration { return e.until + s.ports.port(e.port).paused - e.paused }
		for range 4000 {
			switch rng(12) {
			case 0:
				now += time.Duration(rng(int(quarantine)))
			case 1:
				p := Port(rng(3))
				s.SetPortPaused(p, s.ports.port(p).paused+time.Duration(rng(int(time.Millisecond))))
			case 2:
				s.SetPortDelay(Port(rng(3)), time.Duration(rng(int(time.Millisecond))))
			case 3, 4:
				g, m := uint64(rng(3)), uint64(rng(200))
				want := overflow
				for _, e := range list {
					if e.group == g && e.member == m {
						want = max(want, ends(e))
					}
				}
				if want <= now {
					want = 0
				}
				if got := d.recentUntil(now, &s.ports, rocev2.AddrKey{Lo: g}, rocev2.AddrKey{Lo: m}); got != want {
					t.Fatalf("seed %d at %v: member %d of group %d until %v, want %v", seed, now, m, g, got, want)
				}
				for len(list) > 0 && ends(list[0]) <= now { // departures that have ended are dropped, the oldest first
					list = list[1:]
				}
			default:
				for range rng(20) {
					e := left{uint64(rng(3)), uint64(rng(200)), Port(rng(3)), now + quarantine, 0}
					e.until, e.paused = e.until+s.ports.port(e.port).txDelay, s.ports.port(e.port).paused
					if len(list) == maxDepartures {
						overflow, list = max(overflow, ends(list[0])), list[1:]
					}
					list = append(list, e)
					d.add(now, &s.ports, rocev2.AddrKey{Lo: e.group}, rocev2.AddrKey{Lo: e.member}, e.port)
				}
			}
			if int(d.count) != len(list) {
				t.Fatalf("seed %d: %d departures, want %d", seed, d.count, len(list))
			}
		}
	}
}

// TestPortTimes: a pause counts only if the total has grown, and a delay is at least 0 and
// at most maxTXDelay. A port without either has none.
func TestPortTimes(t *testing.T) {
	s := New(Limits{})
	s.SetPortPaused(2, 5)
	s.SetPortPaused(2, 4)
	s.SetPortPaused(2, 5)
	if s.ports.port(2).paused != 5 || s.ports.pauses != 1 || len(s.ports.ports) != 3 {
		t.Errorf("%+v", s.ports)
	}
	s.SetPortPaused(0, 0)
	s.SetPortPaused(2, 6)
	if s.ports.port(2).paused != 6 || s.ports.port(3) != (portTime{}) || s.ports.pauses != 2 {
		t.Errorf("%+v", s.ports)
	}
	for given, want := range map[time.Duration]time.Duration{-1: 0, 0: 0, 1: 1, maxTXDelay: maxTXDelay, maxTXDelay + 1: maxTXDelay} {
		if s.SetPortDelay(1, given); s.ports.port(1).txDelay != want {
			t.Errorf("a delay of %v counts as %v", given, s.ports.port(1).txDelay)
		}
	}
}
