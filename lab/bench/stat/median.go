// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package stat has what all benchmarks compute of their rounds.
package stat

import (
	"math"
	"slices"
)

// Median returns the middle value, or the mean of the middle two; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// MedianInterval returns values between which the median of what values are samples of lies
// with at least 95 %: order statistics, whatever the distribution. Of fewer than six values it
// returns the lowest and the highest, which have it less often; 0, 0 of none.
func MedianInterval(values []float64) (low, high float64) {
	n := len(values)
	if n == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(values))
	// below is how likely at most k of n samples are below the median.
	k, p := 0, math.Pow(0.5, float64(n))
	for below := p; ; k++ {
		p *= float64(n-k) / float64(k+1)
		if below += p; below > 0.025 {
			return s[k], s[n-1-k]
		}
	}
}
