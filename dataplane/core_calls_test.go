// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Feedback and data in order go through the core once; data that the core has to believe
// goes through it a second time, after the check of the ICRC. With a wrong ICRC there is
// no second time.
func TestCallsOfTheCore(t *testing.T) {
	b := newBench(t, 3)
	ack := func(psn rocev2.PSN) rocev2.Packet {
		return rocev2.Packet{Op: rocev2.Acknowledge, PSN: 1000 + psn, Syndrome: rocev2.SyndromeACK}
	}
	for _, c := range []struct {
		name    string
		from    int
		k       rocev2.Packet
		damaged bool
		calls   uint64
		counted map[string]uint64
	}{
		{"the first packet of a source", 0, rocev2.Packet{Op: rocev2.SendOnly, PSN: 0}, false, 2, nil},
		{"data in order", 0, rocev2.Packet{Op: rocev2.SendOnly, PSN: 1}, false, 1, nil},
		{"data after a gap, damaged", 0, rocev2.Packet{Op: rocev2.SendOnly, PSN: 3}, true, 1, map[string]uint64{"bad_icrc": 1}},
		{"data after a gap", 0, rocev2.Packet{Op: rocev2.SendOnly, PSN: 3}, false, 2, map[string]uint64{"psn_gap": 1}},
		{"an ACK", 1, ack(0), false, 1, nil},
		{"a damaged ACK", 1, ack(1), true, 1, map[string]uint64{"bad_icrc": 1}},
		{"an ACK again", 1, ack(0), false, 1, map[string]uint64{mcast.FeedbackStale.String(): 1}},
		{"a NAK", 1, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 1001, Syndrome: rocev2.SyndromeNAKSequence}, false, 1, nil},
		{"a CNP", 2, rocev2.Packet{Op: rocev2.CNP, BECN: true}, false, 1, nil},
		// The core needs no ICRC to drop what nothing depends on.
		{"a damaged ACK of the source", 0, rocev2.Packet{Op: rocev2.Acknowledge, PSN: 0, Syndrome: rocev2.SyndromeACK}, true, 1,
			map[string]uint64{mcast.FromSource.String(): 1}},
	} {
		calls, drops := b.w.coreCalls, b.w.count.drops()
		var payload []byte
		if c.k.Op == rocev2.CNP {
			payload = rocev2.CNPPayload
		}
		d := b.take(c.from, &c.k, payload)
		if c.damaged {
			b.w.umem.Data(d.Addr, d.Len)[d.Len-1] ^= 1
		}
		b.w.servePacket(c.from, d)
		b.unstage()
		if n := b.w.coreCalls - calls; n != c.calls {
			t.Errorf("%s: %d calls of the core, want %d", c.name, n, c.calls)
		}
		for reason, n := range b.w.count.drops() {
			if more := n - drops[reason]; more != c.counted[reason] {
				t.Errorf("%s: %s counted %d times, want %d", c.name, reason, more, c.counted[reason])
			}
		}
	}
}
