// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Instances that were loaded ahead are taken by kind; beyond their number, and of another
// kind, instances are loaded as before. What nobody takes is unloaded.
func TestPreload(t *testing.T) {
	labtest.Require(t)
	s, err := NewSteering([]netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}, 4797)
	if err != nil {
		t.Fatal(err)
	}
	s.Preload([]bool{false, false, true})
	for _, frags := range []bool{false, true, true, false} {
		p, err := s.Spare(frags)
		if err != nil {
			t.Fatal(err)
		}
		if p.Frags() != frags {
			t.Errorf("asked for %v, got %v", frags, p.Frags())
		}
		if err := p.SetPolicy(&Policy{Blocked: true}); err != nil {
			t.Error(err)
		}
		if n, err := p.Count(XskRoCEv2); n != 0 || err != nil {
			t.Errorf("counter of a new program: %d, %v", n, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if s.preloads.pending != [2]int{} {
		t.Errorf("not taken: %v", s.preloads.pending)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s, err = NewSteering([]netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}, 4797); err != nil {
		t.Fatal(err)
	}
	s.Preload([]bool{false, true})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := len(s.preloads.loaded[0]) + len(s.preloads.loaded[1]); n != 0 {
		t.Errorf("%d instances stay loaded", n)
	}
}
