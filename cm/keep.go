// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Kept is what a connection is known by after a restart of the switch.
type Kept struct {
	State    string
	Record   Record
	Dialled  bool // by the switch
	ID, Peer CommID
	GUID     GUID // ours
	PeerGUID GUID
}

// Connections returns the connections to the groups that are asked for, in the order of their
// IDs, without those that have to come again after a restart: members that wait for the others
// repeat their REQs.
func (m *Manager) Connections(of map[netip.Addr]bool) map[netip.Addr][]Kept {
	all := make(map[netip.Addr][]Kept, len(of))
	for _, c := range m.byID {
		if g := c.listener.Group; of[g] && c.state != requested {
			all[g] = append(all[g], Kept{State: c.state.String(), Record: c.record, Dialled: c.dialled, ID: c.id, Peer: c.peer.id, GUID: c.guid, PeerGUID: c.peer.guid})
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b Kept) int { return int(int64(a.ID) - int64(b.ID)) })
	}
	return all
}

// Registration is a group's registration that has outlasted a restart.
type Registration struct {
	QPN     rocev2.QPN
	MTU     int
	Records []Record
}

var restarted = Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "gleamd has restarted"}

// Restore lets members connect to a group as before a restart. Connections of a group that
// everybody connects to go on, if it is registered still. All others end: both sides get a DREQ, and a
// listener that was not connected yet a REJ.
func (m *Manager) Restore(now time.Duration, l Listen, reg *Registration, kept []Kept, out *Output) error {
	m.begin(now, out)
	if err := m.Open(l); err != nil {
		return err
	}
	ended := &listener{Listen: l, front: m.fronts[l.Group], members: make(map[netip.Addr]*connection), cut: true}
	x := m.listeners[l.Group]
	if x == nil || reg == nil {
		x = ended
	} else {
		x.registered, x.anyMTU = reg.Records, l.MTU == 0
		x.QPN, x.MTU = reg.QPN, reg.MTU
	}
	var all []*connection
	for i := range kept {
		if c := m.restored(x, &kept[i]); c != nil {
			all = append(all, c)
		}
	}
	for _, c := range all {
		switch {
		case x == ended && c.state != leaving:
			m.end(c, restarted)
		case c.state == replied || c.state == leaving:
			m.handle(c, expired)
		case c.state == lingering:
			m.timers.set(c, m.now+lingerTime)
		}
	}
	if x != ended {
		m.dismiss(x)
		m.check(x)
	}
	return nil
}

// restored makes a connection to x of what was kept of it; nil: it cannot be.
func (m *Manager) restored(x *listener, k *Kept) *connection {
	s := state(slices.Index(stateNames[:], k.State))
	if k.ID == 0 || m.byID[k.ID] != nil || !k.Record.IP.IsValid() || s >= closed || s == requested {
		return nil
	}
	c := &connection{listener: x, dialled: k.Dialled, state: s, peer: peer{k.Record.IP, k.PeerGUID, k.Peer}, id: k.ID, guid: k.GUID, tid: m.random.Uint64(), flow: true, record: k.Record}
	if i := slices.IndexFunc(x.registered, func(r Record) bool { return r.IP == k.Record.IP && r.QPN == k.Record.QPN }); i >= 0 {
		c.record = x.registered[i]
	}
	if s.active() && x.members[c.record.IP] != nil {
		return nil
	}
	m.byID[c.id] = c
	if !c.dialled {
		m.byPeer[c.peer] = c
	}
	if s.active() && !x.cut {
		x.members[c.record.IP] = c
	}
	x.ending += s.ending()
	return c
}
