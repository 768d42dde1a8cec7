// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"maps"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
)

// drops returns every reason that has occurred, whether it is normal or not.
func (c *counters) drops() map[string]uint64 {
	normal, drops := c.unserved()
	maps.Copy(drops, normal)
	return drops
}

// Every reason has a name of its own, a text that says what it means, and a
// counter of its own.
func TestReasons(t *testing.T) {
	seen := make(map[string]bool)
	var c counters
	for i := range c.decode {
		c.decode[i] = uint64(1000 + i)
	}
	for i := range c.core {
		c.core[i] = uint64(2000 + i)
	}
	for i := range c.drop {
		c.drop[i] = uint64(3000 + i)
	}
	counts, all := make(map[uint64]string), c.drops()
	for _, r := range Reasons() {
		n := all[r.Name]
		switch {
		case r.Name == "" || seen[r.Name]:
			t.Errorf("the name %q is no reason's own", r.Name)
		case len(r.Text) < 10 || strings.ContainsAny(r.Text, "|\n") || strings.HasSuffix(r.Text, "."):
			t.Errorf("%s: %q is no text for a table: add one beside its name", r.Name, r.Text)
		case n%1000 == 0 || counts[n] != "":
			t.Errorf("%s counts what %q counts", r.Name, counts[n])
		}
		seen[r.Name], counts[n] = true, r.Name
	}
	if want := len(c.decode) + len(c.core) + len(c.drop) - 3; len(seen) != want {
		t.Errorf("%d reasons, want %d", len(seen), want)
	}
}

// What a healthy switch has is told apart from what was lost, refused or forged.
func TestNormalIsNoDrop(t *testing.T) {
	var c counters
	c.core[mcast.FeedbackStale], c.core[mcast.DuplicateData], c.core[mcast.WrongQPN] = 1, 2, 3
	c.drop[dropQueueFull] = 6
	normal, drops := c.unserved()
	if want := map[string]uint64{"feedback_stale": 1, "duplicate_data": 2}; !maps.Equal(normal, want) {
		t.Errorf("normal: %v, want %v", normal, want)
	}
	if want := map[string]uint64{"wrong_qpn": 3, "queue_full": 6}; !maps.Equal(drops, want) {
		t.Errorf("drops: %v, want %v", drops, want)
	}
}
