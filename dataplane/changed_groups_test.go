// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "testing"

// The list of news has each group once, in the order in which they came.
func TestNewsAreOfEachGroupOnce(t *testing.T) {
	n := newChangedGroups(2, make(chan struct{}, 1))
	for range 5 {
		n.add(1)
	}
	n.add(0)
	n.add(1)
	if n.count != 2 || !n.any.Load() || len(n.bell) != 1 {
		t.Errorf("%d on the list, some: %v, bell: %d", n.count, n.any.Load(), len(n.bell))
	}
	first, _ := n.next()
	n.add(1)
	second, _ := n.next()
	third, _ := n.next()
	if _, more := n.next(); first != 1 || second != 0 || third != 1 || more || n.any.Load() {
		t.Errorf("the list was %d, %d, %d; want 1, 0, 1 and no more", first, second, third)
	}
}
