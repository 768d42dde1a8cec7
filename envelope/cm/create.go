// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Creation is a group that a member's REQ makes at an address without a group. The caller decides
// whether the key may make it, and how long members wait.
type Creation struct {
	Listen
	Member netip.Addr   // the member that has sent the REQ
	Window mcast.Window // the window of that member; Len is 0 without one
}

// creation returns the group that a REQ makes; nil: it makes none. Without a right MAC the
// answer is that of an address without a group.
func (m *Manager) creation(from netip.Addr, q *Request, b []byte) *Creation {
	p, ours := readPrivate(b)
	port, ok := q.Port()
	if !ours || !ok || p.expect < minMembers || q.Service != rc || p.key == 0 {
		return nil
	}
	if key := m.cfg.Keys[p.key]; key == nil || !q.authentic(key, port, b) {
		return nil
	}
	return &Creation{
		Listen: Listen{Group: q.Dst, Port: port, Expect: p.expect, Key: p.key, Temporary: true},
		Member: from, Window: p.window,
	}
}

// Refuse answers a REQ whose Creation was refused.
func (m *Manager) Refuse(now time.Duration, from, group netip.Addr, mad []byte, text string, out *Output) {
	m.begin(now, out)
	var x Message
	if out.Drop = Decode(mad, &x); out.Drop == OK && x.Attribute == ConnectRequest {
		m.refuse(from, group, &x, Refusal{Reason: ConsumerReject, Code: NotCreated, Text: text})
	}
}

// isVacant reports whether nothing is left of a group that a REQ has made.
func (l *listener) isVacant() bool {
	return l.Temporary && len(l.members) == 0 && l.ending == 0 && len(l.registered) == 0 && !l.pending && !l.closing
}

// IsVacant reports whether a group of Output.Vacant has no connection still.
func (m *Manager) IsVacant(group netip.Addr) bool {
	l := m.listeners[group]
	return l != nil && l.isVacant()
}
