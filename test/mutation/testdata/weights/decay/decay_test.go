// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package decay

import "testing"

func TestLess(t *testing.T) {
	if !Weight(1).Less(2) || Weight(2).Less(2) {
		t.Error("1 is less than 2, and 2 is not")
	}
}

func TestAtOnce(t *testing.T) {
	if After(8, HalfLife-1) != 8 {
		t.Error("nothing is lost before the first half-life")
	}
}

func TestAfterATime(t *testing.T) {
	if After(8, HalfLife) != 4 {
		t.Error("a half is left after a half-life")
	}
}

func TestAfterMore(t *testing.T) {
	if After(8, 2*HalfLife) != 2 {
		t.Error("a quarter is left after two half-lives")
	}
}
