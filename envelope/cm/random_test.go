// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"testing"
	"time"
)

func netipPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Members come, go, die, come back and are evicted at any time, registrations are refused,
// and every MAD may be lost, duplicated and overtaken. Nobody is ever connected without
// being registered. With the links in order again switch and hosts agree, and when all have
// left nothing is left.
func TestRandomHosts(t *testing.T) {
	if n := randomHosts(t, func(seed uint64) *world { return newWorld(t, seed, 2+int(seed%6), seed%3 == 0) }); n < 400 {
		t.Errorf("only %d connections were made", n)
	}
}

// The same, where the group is made by the REQ that comes first, and ends with its last
// connection.
func TestRandomHostsWhoseREQsMakeTheGroup(t *testing.T) {
	var worlds []*world
	n := randomHosts(t, func(seed uint64) *world {
		w := newCreatingWorld(t, seed, 2+int(seed%6))
		worlds = append(worlds, w)
		return w
	})
	created := 0
	for _, w := range worlds {
		created += w.created
	}
	if n < 400 || created < 80 {
		t.Errorf("only %d connections were made, in %d groups", n, created)
	}
}

func randomHosts(t *testing.T, world func(seed uint64) *world) (connections int) {
	for seed := range uint64(80) {
		w := world(seed)
		w.loss, w.delay, w.refuse = 0.3*w.r.Float64(), time.Duration(1+w.r.Int64N(int64(2*time.Second))), 0.1
		for end := w.now + time.Minute; w.now < end; w.run(w.now + time.Duration(w.r.Int64N(int64(2*time.Second)))) {
			h := w.hosts[w.r.IntN(len(w.hosts))]
			w.replay()
			switch {
			case h.now == nil || h.now.state == "gone":
				h.connect()
			case w.r.IntN(8) == 0:
				h.disconnect(w.r.IntN(2) == 0)
			case w.r.IntN(20) == 0: // dies in silence, and starts again
				h.all, h.now, h.silent = map[CommID]*hostConn{}, nil, true
			case w.r.IntN(20) == 0 && len(w.inForce) > 2 && w.registering == nil:
				w.evict(w.inForce[0].IP)
			case w.r.IntN(100) == 0 && w.registering == nil:
				w.inForce = nil
				w.m.Ended(w.now, w.group, &w.out)
				w.do()
			}
		}
		w.loss, w.delay, w.refuse = 0, time.Millisecond, 0
		w.run(w.now + 100*time.Second)
		w.settled()
		for _, h := range w.hosts {
			if h.now != nil && h.now.state != "gone" {
				h.disconnect(false)
			}
			if h.silent {
				w.evict(h.ip)
			}
		}
		w.run(w.now + 60*time.Second)
		w.empty()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		connections += w.connections
	}
	return connections
}
