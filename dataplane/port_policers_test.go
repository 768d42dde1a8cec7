// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
)

// Each kind of packet has a bound of its own, and an address that exceeds its bound takes
// nothing of the port's.
func TestPortPolicers(t *testing.T) {
	p := newPortPolicers(&config.Limits{NAKsPerPort: 200, EnvelopesPerPort: 400, NeighboursPerPort: 300, EnvelopesPerAddress: 100})
	const now = time.Second
	count := func(allow func() bool) (n int) {
		for range 1000 {
			if allow() {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name  string
		want  int // a burst of a tenth of a second, at least ten
		allow func() bool
	}{
		{"envelopes of an address", 10, func() bool { return p.allowEnvelope(now, fakeHost(0)) }},
		{"envelopes that the port has left", 30, func() bool { return p.envelopes.Allow(now) }},
		{"negative acknowledgements", 20, func() bool { return p.naks.Allow(now) }},
		{"neighbours", 30, func() bool { return p.neighbours.Allow(now) }},
		{"sightings", sightingRate / 10, func() bool { return p.sightings.Allow(now) }},
	} {
		if n := count(c.allow); n != c.want {
			t.Errorf("%s: %d at once, want %d", c.name, n, c.want)
		}
	}
}
