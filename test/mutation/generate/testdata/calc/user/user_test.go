// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package user has tests that notice mutants of calc.
package user

import (
	"testing"

	"github.com/gleam-rdma/gleam/test/mutation/generate/testdata/calc"
)

func TestMiddle(t *testing.T) {
	if m := calc.Untested(3, 7); m != 5 {
		t.Error(m)
	}
}
