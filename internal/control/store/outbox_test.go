// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// groupAt is the address of a group.
func groupAt(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 254, i}) }

// leaves returns the ports, which name them here, of the messages that leave an outbox.
func leaves(o *Outbox[int], stored uint64, failing bool, delayed ...netip.Addr) (ports []int) {
	o.Release(stored, failing, func(g netip.Addr) bool { return slices.Contains(delayed, g) }, func(m *Message[int]) { ports = append(ports, m.Port) })
	return ports
}

// A message waits for the newest change of its group, as of the end of the iteration, and for
// nothing of other groups. Those of a group leave in their order.
func TestOutboxWaitsForTheChangeOfItsGroup(t *testing.T) {
	o := NewOutbox[int]()
	a, b := groupAt(0), groupAt(1)
	add := func(g netip.Addr, name int, promises bool) {
		o.Add(Message[int]{Group: g, Port: name, Promises: promises})
	}
	want := func(step string, got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v leave, want %v", step, got, want)
		}
	}
	add(a, 1, true)
	o.Note(a, 7) // later in the same iteration
	add(b, 2, true)
	want("the file has 6", leaves(&o, 6, false), 2)
	o.Note(b, 8)
	add(a, 3, false)
	add(b, 4, true)
	want("it has 6 still", leaves(&o, 6, false))
	o.Note(a, 9)
	add(a, 5, true)
	want("it has 7", leaves(&o, 7, false), 1, 3)
	want("it has 9", leaves(&o, 9, false), 4, 5)
	add(a, 6, true)
	want("nothing has changed", leaves(&o, 9, false), 6)
	add(b, 7, true)
	want("connections are to be stored", leaves(&o, 9, false, b))
	want("they are not", leaves(&o, 12, false, b))
	o.Determine(map[netip.Addr]bool{b: true}, 13)
	add(b, 8, true)
	want("they are being written", leaves(&o, 12, false))
	want("they are stored", leaves(&o, 13, false), 7, 8)
	o.Note(a, 14)
	add(a, 9, true)
	add(b, 10, true)
	want("one is to be stored, and one's connections", leaves(&o, 13, false, b))
	o.Determine(map[netip.Addr]bool{a: true}, 20)
	want("what has its number keeps it", leaves(&o, 14, false), 9)
	want("what has none waits for it", leaves(&o, 20, false))
	o.Determine(map[netip.Addr]bool{b: true}, 21)
	want("it has one", leaves(&o, 21, false), 10)
	if len(o.waiting)+len(o.fresh)+len(o.byPort)+len(o.changes) != 0 {
		t.Errorf("left: %+v", o)
	}
}

// While the file cannot be written, what promises nothing leaves.
func TestOutboxOfAFailingFile(t *testing.T) {
	o := NewOutbox[int]()
	o.Note(groupAt(0), 5)
	for name := range 4 {
		o.Add(Message[int]{Group: groupAt(0), Port: name, Promises: name%2 == 0})
	}
	for _, x := range []struct {
		stored  uint64
		failing bool
		want    []int
	}{{4, false, nil}, {4, true, []int{1, 3}}, {4, true, nil}, {5, false, []int{0, 2}}} {
		if got := leaves(&o, x.stored, x.failing); !slices.Equal(got, x.want) {
			t.Errorf("stored %d, failing %v: %v leave, want %v", x.stored, x.failing, got, x.want)
		}
	}
}

// The answers that wait are bounded for each port and in all, and room comes back.
func TestOutboxIsBounded(t *testing.T) {
	o := NewOutbox[int]()
	o.Note(groupAt(0), 1)
	n := map[int]int{}
	for range 2 * maxOutbox {
		for port := range 3 {
			if o.HasRoom(port) {
				o.Add(Message[int]{Group: groupAt(0), Port: port, Promises: true})
				n[port]++
			}
		}
		leaves(&o, 0, false)
	}
	if want := map[int]int{0: maxOutboxPerPort, 1: maxOutboxPerPort, 2: maxOutboxPerPort}; !maps.Equal(n, want) {
		t.Errorf("the ports have %v, want %v", n, want)
	}
	for range maxOutbox {
		o.Add(Message[int]{Group: groupAt(0), Port: -1, Promises: true})
	}
	leaves(&o, 0, false)
	if n := o.byPort[-1]; n != maxOutbox-3*maxOutboxPerPort || o.dropped != 3*maxOutboxPerPort || len(o.waiting) != maxOutbox {
		t.Errorf("the switch has %d, %d wait, %d were dropped", n, len(o.waiting), o.dropped)
	}
	if first, again := o.Dropped(), o.Dropped(); first != 3*maxOutboxPerPort || again != 0 {
		t.Errorf("%d were dropped, then %d", first, again)
	}
	if n := o.Expire(outboxTTL - 1); n != 0 {
		t.Errorf("%d messages expire early", n)
	}
	if n := len(leaves(&o, 1, false)); n != maxOutbox || !o.HasRoom(0) || len(o.byPort) != 0 {
		t.Errorf("%d messages leave, and these count still: %v", n, o.byPort)
	}
	o = NewOutbox[int]()
	o.Note(groupAt(0), 1)
	for i := range 3 {
		o.Add(Message[int]{Group: groupAt(0), Port: i, Promises: true, At: time.Duration(i) * time.Second})
	}
	leaves(&o, 0, false)
	if n := o.Expire(time.Second); n != 0 || o.expiry != outboxTTL {
		t.Errorf("%d messages expire, the first at %v", n, o.expiry)
	}
	if n := o.Expire(outboxTTL); n != 1 || o.expiry != outboxTTL+time.Second {
		t.Errorf("%d messages expire, the next at %v", n, o.expiry)
	}
	if n := o.Expire(outboxTTL + time.Second); n != 1 || len(o.byPort) != 1 {
		t.Errorf("%d messages expire, %d remain", n, len(o.byPort))
	}
	if empty := NewOutbox[int](); empty.Expire(time.Second) != 0 || empty.expiry != outboxTTL+time.Second {
		t.Errorf("nothing is to expire before %v", empty.expiry)
	}
	if left := leaves(&o, 1, false); !slices.Equal(left, []int{2}) {
		t.Errorf("%v leave", left)
	}
}

// However many messages wait for a file that cannot be written, those of the switch itself included, the
// answer to a renewal leaves, and what tells a neighbour of one: else the groups of others end with
// their leases. Requests of a port whose answers do not wait are served.
func TestFullOutboxKeepsNobodysLease(t *testing.T) {
	for _, c := range []struct {
		name    string
		failing bool
		group   netip.Addr // the group of the renewal
	}{{"the same group, a file that fails", true, groupAt(0)}, {"another group, a file that is slow", false, groupAt(1)}} {
		o := NewOutbox[int]()
		o.Note(groupAt(0), 1)
		for range 2 * maxOutbox { // the notices of large groups that end, and their repeats
			o.Add(Message[int]{Group: groupAt(0), Port: -1, Promises: true})
		}
		leaves(&o, 0, c.failing)
		if !o.HasRoom(3) {
			t.Errorf("%s: no request is served", c.name)
		}
		o.Add(Message[int]{Group: c.group, Port: 7})
		o.Add(Message[int]{Group: c.group, Port: -1})
		if got := leaves(&o, 0, c.failing); !slices.Equal(got, []int{7, -1}) {
			t.Errorf("%s: %v leave", c.name, got)
		}
	}
}

// That a membership has ended is told however long the file could not be written: the master and the member
// count on it until then. It takes no share of the port whose request has ended it.
func TestEndsAreKeptInTheOutbox(t *testing.T) {
	o := NewOutbox[int]()
	o.Note(groupAt(0), 1)
	for name := range 2 * maxOutboxPerPort {
		o.Add(Message[int]{Group: groupAt(0), Port: name % 2, Promises: true, Lasts: name%2 == 0})
	}
	leaves(&o, 0, true)
	if !o.HasRoom(0) || o.HasRoom(1) {
		t.Errorf("shares: %v", o.byPort)
	}
	for hours := range 3 {
		if n := o.Expire(time.Duration(hours) * time.Hour); n != map[int]int{1: maxOutboxPerPort}[hours] {
			t.Errorf("%d messages expire after %d hours", n, hours)
		}
	}
	if left := leaves(&o, 1, false); len(left) != maxOutboxPerPort || slices.Contains(left, 1) || len(o.byPort) != 0 {
		t.Errorf("%v leave, shares %v", left, o.byPort)
	}
}
