// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

// forwarders returns the ranks to which rank forwards messages, in order; rank 0 is the
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
		// In round k, rank r < 2^k, which has the message, sends to r + 2^k.
		for k := 1; rank+k <= n; k *= 2 {
			if k > rank {
				to = append(to, rank+k)
			}
		}
	}
	return to
}

// sources returns the rank from which each rank gets messages: the inverse of forwarders.
// The sender's own entry is -1, and so are all with a group.
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
