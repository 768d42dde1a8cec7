// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"testing"
	"time"
)

// TestSendersDoNotStopEachOther: one address floods at 50,000 envelopes a second, and
// gets its own rate; others' envelopes pass, but for the few that share its bucket.
func TestSendersDoNotStopEachOther(t *testing.T) {
	s, port := newAddressPolicers(500), NewPolicer(2000)
	flooder, passed, others := netip.MustParseAddr("10.0.0.1"), 0, 0
	const seconds = 2
	for i := range seconds * 50_000 {
		now := time.Duration(i) * 20 * time.Microsecond
		if s.allow(now, flooder) && port.Allow(now) {
			passed++
		}
		if i%1000 == 0 { // another host every 20 ms
			host := netip.AddrFrom4([4]byte{10, 0, 1, byte(i / 1000)})
			if s.allow(now, host) && port.Allow(now) {
				others++
			}
		}
	}
	if passed < 450*seconds || passed > 600*seconds {
		t.Errorf("%d of the flood passed", passed)
	}
	if sent := seconds * 50; others < sent*9/10 {
		t.Errorf("%d of %d of the others' passed", others, sent)
	}
	var none addressPolicers
	for range 1000 {
		if !none.allow(0, flooder) {
			t.Fatal("no limit is one")
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.allow(0, flooder) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
