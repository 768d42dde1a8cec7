// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/mcast"

// What the packets of a group need of the worker: frames for the copies of one packet,
// and places in the ports' rings. Members that have gone need nothing.

// portNeed is how many copies one packet of a group can put on a port.
type portNeed struct{ port, packets int }

// active reports whether copies are made for l.
func (l *leg) active() bool { return !l.gone && l.port >= 0 }

// count finds out how many copies one packet can have.
func (t *groupTable) count() {
	t.copies = 0
	for i := range t.legs {
		if t.legs[i].active() {
			t.copies++
		}
	}
}

// leave notes that member m has left or was evicted.
func (t *groupTable) leave(m mcast.MemberID) {
	l := &t.legs[t.members[m].leg]
	if l.active() {
		t.copies--
	}
	l.gone = true
}

// need sums up how many copies one packet can put on each port.
func (t *groupTable) need(ports int) (need []portNeed) {
	copies := make([]int, ports)
	for i := range t.legs {
		if l := &t.legs[i]; l.active() {
			copies[l.port]++
		}
	}
	for p, n := range copies {
		if n > 0 {
			need = append(need, portNeed{p, n})
		}
	}
	return need
}

// setTable gives a group its tables, and lets the TX ring of each port, or the exit,
// take the copies of one of its packets, also where that is more than the port's share.
func (w *worker) setTable(id mcast.GroupID, t groupTable) {
	t.separate(w.ports)
	w.groups[id] = t
	for _, n := range t.need(len(w.ports)) {
		p := w.ports[n.port]
		p.widest = max(p.widest, (n.packets+spareFeedback)*max(1, t.buffers))
	}
}
