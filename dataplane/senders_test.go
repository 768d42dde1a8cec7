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
	s, port := newSenders(500), newBucket(2000)
	flooder, passed, others := netip.MustParseAddr("10.0.0.1"), 0, 0
	const seconds = 2
	for i := range seconds * 50_000 {
		now := time.Duration(i) * 20 * time.Microsecond
		if s.take(now, flooder) && port.take(now) {
			passed++
		}
		if i%1000 == 0 { // another host every 20 ms
			host := netip.AddrFrom4([4]byte{10, 0, 1, byte(i / 1000)})
			if s.take(now, host) && port.take(now) {
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
	var none senders
	for range 1000 {
		if !none.take(0, flooder) {
			t.Fatal("no limit is one")
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.take(0, flooder) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
