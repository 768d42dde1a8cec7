// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// file is a state file that has a group's connections, some time after they have changed, and
// what waits for that.
type file struct {
	has     []Kept // durable
	isNew   bool   // connections have changed since the last write
	writing []Kept
	durable time.Duration // the time when the write under way is durable; 0: no write is under way
	next    time.Duration
	waiting []Packet
	covered int // those of waiting that may leave after the write under way
}

// note takes notice of what a call of the manager has changed, and returns what may be sent.
func (f *file) note(out *Output) (free []Packet) {
	f.isNew = f.isNew || len(out.Events) > 0
	for _, p := range out.Packets {
		p.MAD = slices.Clone(p.MAD)
		if !p.Promises || !f.isNew && f.durable == 0 {
			free = append(free, p)
			continue
		}
		if f.waiting = append(f.waiting, p); !f.isNew {
			f.covered = len(f.waiting)
		}
	}
	return free
}

// step begins a write, or ends one: then it returns what may be sent.
func (f *file) step(m *Manager, group netip.Addr, now time.Duration, r *rand.Rand) (free []Packet) {
	if f.isNew && f.durable == 0 && (f.next <= now || len(f.waiting) > 0) {
		f.writing, f.covered, f.isNew = m.Connections(map[netip.Addr]bool{group: true})[group], len(f.waiting), false
		f.durable, f.next = now+time.Duration(r.Int64N(int64(20*time.Millisecond))), now+100*time.Millisecond
	}
	if f.durable == 0 || f.durable > now {
		return nil
	}
	f.has, f.durable = f.writing, 0
	free, f.waiting, f.covered = f.waiting[:f.covered], f.waiting[f.covered:], 0
	return free
}
