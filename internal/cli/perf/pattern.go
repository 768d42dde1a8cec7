// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"encoding/binary"
	"fmt"
)

// pattern is the first of the 64-bit words of a message's bytes under --verify;
// each word is the one before plus step.
func pattern(seed uint64, lane, message int) uint64 {
	x := seed ^ uint64(lane)<<56 ^ uint64(message)*step
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9 // splitmix64, so that neighbours are unrelated
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

const step = 0x9E3779B97F4A7C15

// fill writes the pattern that begins with word into b.
func fill(b []byte, word uint64) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, word)
		word += step
	}
	for i := range b {
		b[i] = byte(word >> (8 * i))
	}
}

// checkFilled reports the first byte of b that differs from the pattern.
func checkFilled(b []byte, word uint64) error {
	at := 0
	for ; len(b)-at >= 8 && binary.LittleEndian.Uint64(b[at:]) == word; at += 8 {
		word += step
	}
	for i, v := range b[at:min(len(b), at+8)] {
		if want := byte(word >> (8 * i)); v != want {
			return fmt.Errorf("byte %d is 0x%02x, want 0x%02x", at+i, v, want)
		}
	}
	return nil
}
