// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

// forwarders returns to whom rank sends on what it has, in order; rank 0 is the
// sender and 1..n are the receivers.
func forwarders(mode string, rank, n int) []int {
	var to []int
	switch mode {
	case Unicasts:
		for r := 1; rank == 0 && r <= n; r++ {
			to = append(to, r)
		}
	case Chain:
		if rank < n {
			to = []int{rank + 1}
		}
	case Tree:
		// In round k, rank r < 2^k, which has it, sends to r + 2^k.
		for k := 1; rank+k <= n; k *= 2 {
			if k > rank {
				to = append(to, rank+k)
			}
		}
	}
	return to
}

// sources returns from whom each rank gets it: the inverse of relays. The
// sender's own place holds -1, and so do all with a group.
func sources(mode string, n int) []int {
	from := make([]int, n+1)
	for i := range from {
		from[i] = -1
	}
	for r := range n + 1 {
		for _, to := range forwarders(mode, r, n) {
			from[to] = r
		}
	}
	return from
}
