// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math/rand/v2"
	"testing"
)

// The ranks are those of tables for the confidence interval of a median.
func TestMedianInterval(t *testing.T) {
	for n, want := range map[int][2]float64{
		0: {0, 0}, 1: {1, 1}, 5: {1, 5}, 6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 10: {2, 9}, 20: {6, 15}, 40: {14, 27}, 100: {40, 61},
	} {
		var values []float64
		for i := range n {
			values = append(values, float64(n-i))
		}
		if low, high := MedianInterval(values); low != want[0] || high != want[1] {
			t.Errorf("of %d values: the %v. to the %v., want %v", n, low, high, want)
		}
	}
}

// The interval has the median in 95 of 100 samples at least.
func TestMedianIntervalHasTheMedian(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const samples = 20_000
	has := 0
	for range samples {
		values := make([]float64, 25)
		for i := range values {
			values[i] = r.ExpFloat64() // its median is ln 2
		}
		if low, high := MedianInterval(values); low <= 0.693147 && 0.693147 <= high {
			has++
		}
	}
	if share := float64(has) / samples; share < 0.95 || share > 0.98 {
		t.Errorf("%.3f of the intervals have the median, want 0.95 to 0.98", share)
	}
}
