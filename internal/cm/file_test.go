// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"math/rand/v2"
	"net/netip"
	"time"
)

// file is a state file that has a group's connections, some time after they have changed.
type file struct {
	has     []Kept // durable
	isNew   bool   // connections have changed since the last write
	writing []Kept
	serial  uint64
	durable time.Duration // when the write under way is; 0: there is none
	next    time.Duration
}

// note takes notice of what a call of the manager has changed.
func (f *file) note(out *Output) { f.isNew = f.isNew || len(out.Events) > 0 }

// step begins a write, or ends one: then it returns true, and out is what follows.
func (f *file) step(m *Manager, group netip.Addr, now time.Duration, r *rand.Rand, out *Output) bool {
	if f.isNew && f.durable == 0 && (f.next <= now || m.Holds()) {
		all, serial := m.Connections(map[netip.Addr]bool{group: true})
		f.writing, f.serial, f.isNew = all[group], serial, false
		f.durable, f.next = now+time.Duration(r.Int64N(int64(20*time.Millisecond))), now+100*time.Millisecond
	}
	if f.durable == 0 || f.durable > now {
		return false
	}
	f.has, f.durable = f.writing, 0
	m.Kept(now, f.serial, out)
	return true
}
