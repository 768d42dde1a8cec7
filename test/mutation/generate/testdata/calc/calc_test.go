// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package calc

import (
	"slices"
	"testing"
)

func TestSum(t *testing.T) {
	if sum, n := Sum([]int{1, -2, 0, 3}); sum != 4 || n != 2 {
		t.Errorf("%d of %d", sum, n)
	}
	if sum, n := Sum(slices.Repeat([]int{2}, 20)); sum != 22 || n != 11 {
		t.Errorf("%d of %d", sum, n)
	}
}

func TestWithin(t *testing.T) {
	for x, want := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		if Within(x, 1, 3) != want {
			t.Error(x)
		}
	}
}

func TestClear(t *testing.T) {
	xs := []int{1, 2}
	Clear(xs, 3)
	if !slices.Equal(xs, []int{3, 3}) {
		t.Error(xs)
	}
}

func TestHalvings(t *testing.T) {
	if n := Halvings(8); n != 4 {
		t.Error(n)
	}
}
