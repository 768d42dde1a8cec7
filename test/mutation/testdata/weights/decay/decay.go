// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package decay is code for the tests of the mutation tool to put mistakes into.
package decay

// Weight halves with each half-life.
type Weight uint32

// HalfLife is the time in which a weight halves.
const HalfLife = 8

// Less compares weights.
func (w Weight) Less(v Weight) bool { return w < v }

// After returns what is left of w after a time.
func After(w Weight, time uint) Weight {
	if n := time / HalfLife; n > 0 {
		w >>= n
	}
	return w
}
