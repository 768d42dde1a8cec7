// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package calc has something for each operator of the mutants.
package calc

const limit = 10 + 1 // no mutant: a constant

// Sum adds the positive ones of xs, up to limit of them.
func Sum(xs []int) (sum, n int) {
	for _, x := range xs {
		if x <= 0 || n == limit {
			continue
		}
		sum += x
		n++
	}
	return sum, n
}

// Within says whether x is between low and high.
func Within(x, low, high int) bool { return low <= x && x < high }

// Clear sets all of xs to x.
func Clear(xs []int, x int) {
	if len(xs) == 0 {
		return
	}
	set := func() {
		for i := range xs {
			xs[i] = x
		}
	}
	set()
}

// Untested returns the middle of a and b. No test of this package calls it.
func Untested(a, b int) int { return a + (b-a)/2 }

// Halvings is how often n can be halved before nothing is left of it. Without its steps
// it never ends.
func Halvings(n uint) (times int) {
	for n > 0 {
		n /= 2
		times++
	}
	return times
}
