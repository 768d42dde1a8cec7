// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2_test

import (
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/copycases"
)

// The ICRC of every copy of the common table is that of the packet it is made of, changed by
// its headers' difference alone; a wrong one stays wrong. The same table is that of the worker
// and of the XDP programs.
func TestCopiesICRC(t *testing.T) {
	ops := rocev2.NewOperators(rocev2.MaxShift)
	for _, c := range copycases.Copied() {
		var in, out rocev2.Frame
		if r := rocev2.Decode(c.Frame, &in); r != rocev2.OK || in.Op != c.Op {
			t.Fatalf("%s: %v, %v", c.Name, r, in.Op)
		}
		for i := range c.Copies {
			if r := rocev2.Decode(c.Copies[i], &out); r != rocev2.OK {
				t.Fatalf("%s, leg %d: %v", c.Name, i, r)
			}
			delta, ok := ops.HeaderDelta(&in, &out)
			if !ok || in.ICRC()^delta != out.ICRC() || in.VerifyICRC() != out.VerifyICRC() {
				t.Errorf("%s, leg %d: ICRC %08x, of the packet with that of %08x (%v); verifies %v, %v",
					c.Name, i, out.ICRC(), in.ICRC()^delta, ok, in.VerifyICRC(), out.VerifyICRC())
			}
		}
	}
}

// What is wrong with the frames of the common table that no copies are made of at once.
func TestCopiesLeft(t *testing.T) {
	for _, c := range copycases.Left() {
		var f rocev2.Frame
		if r := rocev2.Decode(c.Frame, &f); r != c.Decode {
			t.Errorf("%s: %v, want %v", c.Name, r, c.Decode)
		}
	}
}
