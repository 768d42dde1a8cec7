// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"os"
	"testing"
)

// moreTrees makes the runs that GLEAM_TREES names by "multiplier first last", as docs/TREES.md does.
func moreTrees(t *testing.T, add uint64, members bool) {
	s := os.Getenv("GLEAM_TREES")
	if s == "" {
		return
	}
	var multiplier, first, last uint64
	if _, err := fmt.Sscan(s, &multiplier, &first, &last); err != nil {
		t.Fatalf("GLEAM_TREES=%q: not a multiplier, a first and a last run: %v", s, err)
	}
	before := treesWithEvictions
	for n := first; n <= last; n++ {
		if stuck := changingTree(t, (2000+n)*multiplier+add, members, nil); stuck != "" {
			t.Errorf("run %d of multiplier %d: %s", n, multiplier, stuck)
		}
	}
	t.Logf("in %d of the runs a host was evicted, and joined anew", treesWithEvictions-before)
}

// treesWithEvictions counts the runs of changingTree in which a host was evicted, and has joined anew.
var treesWithEvictions int
