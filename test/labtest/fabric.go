// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"testing"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

// FRR makes the test Unavailable without FRR.
func FRR(t testing.TB) {
	t.Helper()
	Require(t)
	Needs(t, "/usr/lib/frr/zebra")
}

// Fabric makes a fabric for the test.
func Fabric(t testing.TB, c fabric.Config) *fabric.Fabric {
	t.Helper()
	Require(t)
	if c.Routing != fabric.Static && c.Routing != "" {
		FRR(t)
	}
	c.Redirects = c.Redirects || FastPath()
	f, err := fabric.New(c)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, f)
	return f
}
