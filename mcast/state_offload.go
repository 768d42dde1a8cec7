// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "time"

// The encoding of who forwards, for groups that may be offloaded.

func (g *group) appendOffload(b []byte, now time.Duration) []byte {
	if g.extra == nil || g.extra.offload == nil {
		return b
	}
	x := g.extra.offload
	state := g.repair.path
	if state == draining && now >= x.drainUntil {
		state = corePath
	}
	b = append(b, byte(state-corePath)|bit(g.is(lostNxt), 7))
	if state == draining {
		b = appendTime(b, now, x.drainUntil)
	}
	b = appendAhead(b, now, x.grantFrom)
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 {
			m := &g.activityOf(i).recovery
			b = append(b, bit(m.gateOpen, 0)|bit(m.shutNow, 1))
			b = appendAhead(b, now, m.drainUntil)
		}
	}
	return b
}

func (r *stateReader) offload(g *group) {
	if g.repair.path = notOffered; g.extra == nil || g.extra.offload == nil {
		return
	}
	x := g.extra.offload
	f := r.byte()
	g.set(lostNxt, f&0x80 != 0)
	g.repair.path, x.drainUntil, x.gatesChanged = corePath+offloadState(f&^0x80), 0, false
	if g.repair.path >= numOffloadStates {
		r.malformed, g.repair.path = true, corePath
	}
	if g.repair.path == draining {
		x.drainUntil = r.time()
	}
	x.grantFrom = r.time()
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 {
			m, f := &g.activity[i].recovery, r.byte()
			m.gateOpen, m.shutNow, m.drainUntil = f&1 != 0, f&2 != 0, r.time()
		}
	}
}
