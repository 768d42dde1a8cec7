// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// A member's answer to what a former gleamd has sent must not be taken for one to a probe of
// this one (R83). The former one has sent nothing since the ports' queues have sockets of this
// process, as each has one socket at a time. That is when the workers' clock begins.

// SilentFor has the workers serve all that has come so far, and returns for how long, by then, nothing
// of a former life of this switch has gone to a member (mcast.GroupSpec.SilentFor).
func (p *Plane) SilentFor() time.Duration {
	at := p.Now()
	for range 2 { // workers pass packets on to each other
		if !p.workers.do(func(w *worker) { w.settle(p.cfg.Rings.RX) }) {
			return 0
		}
	}
	return at
}

// settle serves at least all packets that wait in the RX rings, which have that many entries.
func (w *worker) settle(ring int) {
	// A call takes a batch of each ring, or half of one, if the rest is the begin of a packet in
	// several buffers.
	for range 2*ring/len(w.rx) + 1 {
		w.readClock()
		if w.receiveAll() == 0 {
			return
		}
		w.flush()
	}
}
