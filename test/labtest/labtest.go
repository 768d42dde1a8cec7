// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package labtest gives tests labs that close with the test.
package labtest

import (
	"os"
	"testing"

	"github.com/gleam-rdma/gleam/lab"
)

// RequireEnv is the environment variable that, set to 1, turns a test skipped
// for missing privilege into a failure.
const RequireEnv = "GLEAM_REQUIRE_ROOT"

// SkipEnv is the environment variable that, set to 1, skips the tests that need a lab: a
// run for each of thousands of mutants has no time for them.
const SkipEnv = "GLEAM_SKIP_LABS"

// Unavailable skips the test for a reason of the machine, or fails it if RequireEnv is
// 1.
func Unavailable(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Require makes the test Unavailable unless namespaces can be made.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv(SkipEnv) == "1" {
		t.Skip("labs are skipped: " + SkipEnv + " is 1")
	}
	if err := lab.Supported(); err != nil {
		Unavailable(t, "needs network namespaces: %v", err)
	}
}

// New makes an anonymous lab for the test.
func New(t testing.TB) *lab.Lab {
	t.Helper()
	Require(t)
	l, err := lab.New(lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	return l
}

// Star makes a star for the test.
func Star(t testing.TB, c lab.StarConfig) *lab.Star {
	t.Helper()
	Require(t)
	c.Redirects = c.Redirects || FastPath()
	s, err := lab.NewStar(c)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, s)
	return s
}

func closeAfter(t testing.TB, l interface{ Close() error }) {
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close lab: %v", err)
		}
	})
}
