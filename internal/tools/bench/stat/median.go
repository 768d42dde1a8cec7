// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package stat has what all benchmarks compute of their rounds.
package stat

import "slices"

// Median returns the middle value, or the mean of the middle two; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
