// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "testing"

// One port's envelopes do not take the places of other ports', and a place is free
// again with its envelope.
func TestEnvelopesOfOnePortTakeTheirShare(t *testing.T) {
	s := newSlowPath(5)
	for _, l := range []*slotClass{s.renewals, s.requests} {
		free := len(l.free)
		for range 2 {
			var held []*Datagram
			for port := range 5 {
				n := 0
				for d := l.acquire(port); d != nil; d = l.acquire(port) {
					held = append(held, d)
					n++
				}
				if want := free / portShare; port < portShare && n != want || port >= portShare && n != 0 {
					t.Errorf("port %d has %d of %d places, want %d", port, n, free, want)
				}
			}
			for _, d := range held {
				d.Release()
			}
		}
		if len(l.free) != free {
			t.Errorf("%d places are free, want %d", len(l.free), free)
		}
	}
}
