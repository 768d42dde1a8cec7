// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"

	"github.com/gleam-rdma/gleam/mcast/token"
)

// TestR87_TagsAreApart: the tags of epochs near to each other are as far apart as tagStep
// says, from any epoch on.
func TestR87_TagsAreApart(t *testing.T) {
	tag := func(epoch, number uint32) int32 {
		tr := &tree{place: TreeSpec{Epoch: epoch}}
		return int32((&group{extra: &extra{tree: tr, numbers: []token.Member{token.Member(number)}}}).tagOf(0))
	}
	for _, epoch := range []uint32{0, 1, 1<<24 - 5, 1<<32 - 7} {
		for d := uint32(1); d <= 4096; d++ {
			apart := (tag(epoch+d, 1) - tag(epoch, 1)) & (1<<24 - 1)
			if apart = min(apart, 1<<24-apart); int64(apart)*3*int64(d) < 1<<24 {
				t.Fatalf("the tags of epochs %d and %d are %d apart", epoch, epoch+d, apart)
			}
		}
		if tag(epoch, 1) == tag(epoch, 2) || tag(epoch, 1) != tag(epoch, 1+1<<24) {
			t.Errorf("epoch %d: tags of numbers 1, 2 and 2^24+1: %x %x %x", epoch, tag(epoch, 1), tag(epoch, 2), tag(epoch, 1+1<<24))
		}
	}
}
