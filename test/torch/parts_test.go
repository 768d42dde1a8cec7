// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"os/exec"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// What needs no torch: ring, credits, membership, versions, and a hub that hears anything.
func TestParts(t *testing.T) {
	labtest.Needs(t, python)
	out, err := exec.Command(python, "-B", "testdata/parts_test.py", absolute(t, "../../host/libgleam/python")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
