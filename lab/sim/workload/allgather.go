// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

// scatterGather is Open MPI's broadcast by a binomial scatter, then an allgather: in a ring,
// or by recursive doubling. Blocks are ceil(bytes/ranks) long; the last ones may be empty.
type scatterGather struct{ steps [][]step }

func (s scatterGather) step(rank, k int) (step, bool) {
	if k >= len(s.steps[rank]) {
		return step{}, false
	}
	return s.steps[rank][k], true
}

// blockRange is the range of blocks from first to end, without end.
func blockRange(ranks int, bytes int64, first, end int) (off, n int64) {
	size := (bytes + int64(ranks) - 1) / int64(ranks)
	off = min(size*int64(first), bytes)
	return off, min(size*int64(end), bytes) - off
}

// scatter returns the steps by which each rank gets its own blocks: from the parent those
// of its whole subtree. Messages without a byte are not sent.
func scatter(ranks int, bytes int64) [][]step {
	steps := make([][]step, ranks)
	for r := range ranks {
		mask := 1
		for mask < ranks && r&mask == 0 {
			mask <<= 1
		}
		if r > 0 {
			if _, n := blockRange(ranks, bytes, r, r+1); n > 0 {
				steps[r] = append(steps[r], receive(r-mask))
			}
		}
		for mask >>= 1; mask > 0; mask >>= 1 {
			if r+mask >= ranks {
				continue
			}
			if off, n := blockRange(ranks, bytes, r+mask, min(r+2*mask, ranks)); n > 0 {
				st := send(r+mask, off, n)
				st.sent = true
				steps[r] = append(steps[r], st)
			}
		}
	}
	return steps
}

// newScatterRing is the scatter and an allgather in a ring: each rank sends to the right
// what it has got from the left.
func newScatterRing(ranks int, bytes int64) scatterGather {
	steps := scatter(ranks, bytes)
	for r := range ranks {
		for i := range ranks - 1 {
			block := (r - i + ranks) % ranks
			off, n := blockRange(ranks, bytes, block, block+1)
			steps[r] = append(steps[r], step{to: (r + 1) % ranks, off: off, bytes: n, from: (r - 1 + ranks) % ranks, sent: true})
		}
	}
	return scatterGather{steps}
}

// newScatterDoubling is the scatter and an allgather in which subtrees of equal size
// exchange all that they have. Where a rank has no partner, as the number of ranks is no power
// of two, those of its subtree that have one pass the blocks on.
func newScatterDoubling(ranks int, bytes int64) scatterGather {
	steps := scatter(ranks, bytes)
	for mask := 1; mask < ranks; mask <<= 1 {
		for r := range ranks {
			root, other := r&^(mask-1), r^mask
			otherRoot := other &^ (mask - 1)
			if other < ranks {
				off, n := blockRange(ranks, bytes, root, min(root+mask, ranks))
				steps[r] = append(steps[r], step{to: other, off: off, bytes: n, from: other, sent: true})
			}
			if otherRoot+mask <= ranks {
				continue
			}
			// The other subtree is incomplete, or there is none.
			steps[r] = append(steps[r], proxies(ranks, bytes, mask, r)...)
		}
	}
	return scatterGather{steps}
}

// proxies returns the steps of a rank that pass blocks to the ranks of its subtree that have had no
// partner in the exchange by mask, or that take them.
func proxies(ranks int, bytes int64, mask, r int) (steps []step) {
	root := r &^ (mask - 1)
	have := ranks - root - mask // ranks of the subtree that have had a partner
	if have <= 0 {
		return nil
	}
	off, n := blockRange(ranks, bytes, root+mask, min(root+2*mask, ranks))
	for half := mask >> 1; half > 0; half >>= 1 {
		other := r ^ half
		top := r &^ (2*half - 1)
		switch {
		case other > r && r < top+have && other >= top+have && other < root+mask:
			st := send(other, off, n)
			st.sent = true
			steps = append(steps, st)
		case other < r && other < top+have && r >= top+have:
			steps = append(steps, receive(other))
		}
	}
	return steps
}

// newSplitBinary is Open MPI's split-binary broadcast: the halves of the message go down the left
// and the right subtree of a binary tree, and then each rank exchanges its half with one of the
// other subtree. The last rank of an even number has no partner: the root sends to it.
func newSplitBinary(ranks int, bytes int64) scatterGather {
	t := newTree(ranks, bytes, 1, together, inBinary)
	steps := make([][]step, ranks)
	half := func(left bool) (off, n int64) {
		if left {
			return 0, (bytes + 1) / 2
		}
		return (bytes + 1) / 2, bytes - (bytes+1)/2
	}
	for r := range ranks {
		if r > 0 {
			steps[r] = append(steps[r], receive(t.parent[r]))
		}
		for i, c := range t.children[r] {
			off, n := half(c%2 == 1)
			st := send(c, off, n)
			st.sent = i == len(t.children[r])-1
			steps[r] = append(steps[r], st)
		}
		switch last := ranks - 1; {
		case r == 0 && ranks%2 == 0:
			off, n := half(false)
			st := send(last, off, n)
			st.sent = true
			steps[r] = append(steps[r], st)
		case r == 0:
		case ranks%2 == 0 && r == last:
			steps[r] = append(steps[r], receive(0))
		default:
			other := r - 1
			if r%2 == 1 {
				other = r + 1
			}
			off, n := half(r%2 == 1)
			steps[r] = append(steps[r], step{to: other, off: off, bytes: n, from: other, sent: true})
		}
	}
	return scatterGather{steps}
}
