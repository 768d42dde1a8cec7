// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import "testing"

// A limit that was closed and opened again is another word, though its PSN is the same: a program that has read the
// first one does not move it. Neither its PSN nor MOVES is lost in the number of changes.
func TestLimitWords(t *testing.T) {
	seen := map[uint64]bool{}
	for word := limitAt(^uint64(0), psnMask); len(seen) < 100; word = limitAt(word, psnMask) {
		if word&limitMoves != 0 || word&psnMask != psnMask {
			t.Fatalf("the word %#x moves, or has another PSN", word)
		}
		if open := word | limitMoves; seen[open] {
			t.Fatalf("the word %#x was there before", open)
		} else {
			seen[open] = true
		}
	}
}
