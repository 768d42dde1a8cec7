// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The next look is at the group whose time comes first, whatever has been added, moved and removed.
func TestFastLooksAreInOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var h fastLooks
	var all []*fastGroup
	for range 5000 {
		at := time.Duration(r.IntN(50))
		switch k := r.IntN(5); {
		case k < 2 || len(all) == 0:
			f := &fastGroup{lookAt: at}
			h.add(f)
			all = append(all, f)
		case k < 4:
			h.move(all[r.IntN(len(all))], at)
		default:
			i := r.IntN(len(all))
			h.remove(all[i])
			all = slices.Delete(all, i, i+1)
		}
		first := time.Duration(1 << 62)
		for _, f := range all {
			if first = min(first, f.lookAt); h[f.lookIndex] != f {
				t.Fatal("a group is not where it is said to be")
			}
		}
		if is, ok := h.first(); ok != (len(all) > 0) || ok && is != first || len(h) != len(all) {
			t.Fatalf("the next of %d looks is at %v, %v; want %v of %d", len(h), is, ok, first, len(all))
		}
	}
}

// Groups that are not granted are in the order in which they were added, those with too large a ring in front.
func TestFastIdleList(t *testing.T) {
	var l fastIdleList
	a, b, c, d := &fastGroup{id: 1}, &fastGroup{id: 2}, &fastGroup{id: 3}, &fastGroup{id: 4}
	expect := func(want ...*fastGroup) {
		t.Helper()
		var is []*fastGroup
		if l.head.younger != nil {
			for f := l.next(nil); f != nil; f = l.next(f) {
				is = append(is, f)
			}
		}
		if !slices.Equal(is, want) {
			t.Errorf("%d groups, want %d", len(is), len(want))
		}
	}
	expect()
	l.remove(a)
	l.add(a, false)
	l.add(b, false)
	l.add(c, true)
	expect(c, a, b)
	l.remove(a)
	l.add(d, false)
	expect(c, b, d)
	l.remove(c)
	l.remove(c)
	l.remove(d)
	expect(b)
	l.remove(b)
	expect()
	l.add(a, true)
	expect(a)
}
