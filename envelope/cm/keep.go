// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Kept is what a connection is known by after a restart of the switch.
type Kept struct {
	State    string
	Record   mcast.MemberRecord
	Dialled  bool // true: the switch has dialled
	ID, Peer CommID
	GUID     GUID // ours
	PeerGUID GUID
}

// Waited reports whether a host had not had an answer to its REQ, as far as the file says.
func (k *Kept) Waited() bool { return k.State == requested.String() }

// Connections returns the connections to the groups that are asked for, in the order of their
// IDs.
func (m *Manager) Connections(of map[netip.Addr]bool) map[netip.Addr][]Kept {
	all := make(map[netip.Addr][]Kept, len(of))
	for g := range of {
		var list []Kept
		for _, c := range m.byGroup[g] {
			list = append(list, Kept{State: c.state.String(), Record: c.record, Dialled: c.dialled, ID: c.id, Peer: c.peer.id, GUID: c.guid, PeerGUID: c.peer.guid})
		}
		slices.SortFunc(list, func(a, b Kept) int { return int(int64(a.ID) - int64(b.ID)) })
		all[g] = list
	}
	return all
}

// enter makes a connection known.
func (m *Manager) enter(c *connection) {
	g := c.listener.Group
	m.byID[c.id] = c
	m.setFound(c, true)
	if m.byGroup[g] == nil {
		m.byGroup[g] = make(map[CommID]*connection)
	}
	m.byGroup[g][c.id] = c
}

// setFound says whether c's host is where it was dialled, as far as is known.
func (m *Manager) setFound(c *connection, is bool) {
	if c.found == is {
		return
	}
	if c.found = is; is {
		m.byHost[c.peer.ip]++
	} else if m.byHost[c.peer.ip]--; m.byHost[c.peer.ip] == 0 {
		delete(m.byHost, c.peer.ip)
	}
}

// answersREQ notes that a listener has answered a REQ.
func (m *Manager) answersREQ(c *connection) {
	c.tries = 0
	m.setFound(c, true)
}

// IsConnected reports whether there is a connection to a host, one that waits or ends included. A
// listener that has not answered a REQ for a second has none: it may be elsewhere.
func (m *Manager) IsConnected(host netip.Addr) bool { return m.byHost[host] > 0 }

// remove forgets a connection that is closed.
func (m *Manager) remove(c *connection) {
	g := c.listener.Group
	delete(m.byID, c.id)
	m.setFound(c, false)
	delete(m.byGroup[g], c.id)
	if len(m.byGroup[g]) == 0 {
		delete(m.byGroup, g)
	}
	if m.byPeer[c.peer] == c {
		delete(m.byPeer, c.peer)
	}
}

// Registration is a group's registration that has outlasted a restart.
type Registration struct {
	QPN     rocev2.QPN
	MTU     int
	Records []mcast.MemberRecord
}

var restarted = Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "gleamd has restarted"}

// Restore lets members connect to a group as before a restart. Connections of a group that
// everybody connects to go on, if it is registered still, with them. All others end: both sides get a DREQ, and a
// listener that was not connected yet a REJ. A REQ that waited may have been answered since: its
// host gets a DREQ too, which Linux does not refer to a REQ that it still repeats.
func (m *Manager) Restore(now time.Duration, l Listen, reg *Registration, kept []Kept, out *Output) error {
	m.begin(now, out)
	if err := m.Open(l); err != nil {
		return err
	}
	over := &listener{Listen: l, front: m.fronts[l.Group], members: make(map[netip.Addr]*connection)}
	x := m.listeners[l.Group]
	if x == nil || reg == nil {
		x = over
	} else {
		x.registered, x.anyMTU = reg.Records, l.MTU == 0
		x.QPN, x.MTU = reg.QPN, reg.MTU
	}
	var all []*connection
	for i := range kept {
		if c := m.restored(x, over, &kept[i]); c != nil {
			all = append(all, c)
		}
		if k := &kept[i]; k.Waited() && l.Key != 0 {
			m.resumed[peer{k.Record.IP, k.PeerGUID, k.Peer}] = resumption{claimant{l.Group, k.Record.IP, k.Record.QPN}, k.Record.RQPSN, now + repeatedFor}
		}
	}
	for _, c := range all {
		switch {
		case c.listener == over && c.state != leaving:
			m.handle(c, ended)
		case c.state == replied || c.state == leaving:
			m.handle(c, expired)
		case c.state == lingering:
			m.timers.set(c, m.now+lingerTime)
		}
	}
	if x != over {
		m.dismiss(x)
		m.check(x)
	}
	return nil
}

// restored makes a connection to x, or to over, of what was kept of it; nil: it cannot be.
func (m *Manager) restored(x, over *listener, k *Kept) *connection {
	s := state(slices.Index(stateNames[:], k.State))
	if k.ID == 0 || m.byID[k.ID] != nil || !k.Record.IP.IsValid() || s >= closed {
		return nil
	}
	c := &connection{listener: x, dialled: k.Dialled, state: s, peer: peer{k.Record.IP, k.PeerGUID, k.Peer}, id: k.ID, guid: k.GUID, tid: m.random.Uint64(), flow: true, record: k.Record}
	i := slices.IndexFunc(x.registered, func(r mcast.MemberRecord) bool {
		return r.IP == k.Record.IP && r.QPN == k.Record.QPN && r.SQPSN == k.Record.SQPSN && r.RQPSN == k.Record.RQPSN
	})
	if i >= 0 {
		c.record = x.registered[i]
	}
	waited := k.Waited()
	if waited {
		c.state = replied
		if i < 0 {
			c.listener = over
		}
	}
	if x = c.listener; x == over && !waited {
		c.why = restarted
	}
	if s.active() && x.members[c.record.IP] != nil {
		return nil
	}
	m.enter(c)
	if !c.dialled && !(waited && x == over) { // else its REQ begins anew
		m.byPeer[c.peer] = c
	}
	if s.active() && x != over {
		x.members[c.record.IP] = c
	}
	x.ending += c.state.ending()
	return c
}
