// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "math/bits"

// pool holds the unused slices of one type, by the logarithm of their capacity, which is a
// power of two. A group takes slices while data flows, so that the steady state allocates
// nothing, and gives them back when it ends or is idle.
type pool[T any] struct {
	free [24][][]T
}

// get returns a slice of n zero values.
func (p *pool[T]) get(n int) []T {
	k := bits.Len(uint(max(n, 1) - 1))
	f := p.free[k]
	if len(f) == 0 {
		return make([]T, n, 1<<k)
	}
	s := f[len(f)-1]
	p.free[k] = f[:len(f)-1]
	return s[:n]
}

// put takes back a slice from get, or one that append has made from such a slice.
func (p *pool[T]) put(s []T) {
	if cap(s) == 0 {
		return
	}
	k := bits.Len(uint(cap(s))) - 1 // the capacity of a slice from append may be no power of two
	s = s[:1<<k]
	clear(s)
	p.free[k] = append(p.free[k], s[:0])
}

// resize returns a slice of n values that begins with those of s, and takes s back.
func (p *pool[T]) resize(s []T, n int) []T {
	t := p.get(n)
	copy(t, s)
	p.put(s)
	return t
}
