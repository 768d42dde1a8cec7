// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/mcast"

// What the packets of a group need of the worker: frames for the copies of one packet,
// and places in the ports' rings. Members that have gone need nothing.

// portNeed is how many copies one packet of a group can put on a port.
type portNeed struct{ port, packets int }

// isActive reports whether copies are made for l.
func (l *leg) isActive() bool { return !l.gone && l.port >= 0 }

// countCopies finds out how many copies one packet can have.
func (t *groupTable) countCopies() {
	t.maxCopies = 0
	for i := range t.legs {
		if t.legs[i].isActive() {
			t.maxCopies++
		}
	}
}

// markGone notes that member m has left or was evicted.
func (t *groupTable) markGone(m mcast.MemberID) {
	l := &t.legs[t.members[m].leg]
	if l.isActive() {
		t.maxCopies--
	}
	l.gone = true
}

// portNeeds sums up how many copies one packet can put on each port.
func (t *groupTable) portNeeds(ports int) (need []portNeed) {
	copies := make([]int, ports)
	for i := range t.legs {
		if l := &t.legs[i]; l.isActive() {
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
	t.noteIsolation(w.ports)
	w.groups[id] = t
	for _, n := range t.portNeeds(len(w.ports)) {
		p := w.ports[n.port]
		p.maxPacketFrames = max(p.maxPacketFrames, (n.packets+maxFeedback)*max(1, t.maxBuffers))
	}
}
