// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package host has the tests of libgleam-mpi that need no MPI. ../bcast.c is a program of
// MPI for the machine of test/rxe.
package host

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestPlan runs the tests in C of what libgleam-mpi decides without MPI.
func TestPlan(t *testing.T) {
	runC(t, "../plan.c", "../../plan.c")
}

// TestRegistry runs those of its cache of registrations.
func TestRegistry(t *testing.T) {
	labtest.Needs(t, "/usr/include/infiniband/verbs.h")
	runC(t, "../registry.c", "../../registry.c")
}

// runC compiles sources, and runs the program, which prints "ok".
func runC(t *testing.T, sources ...string) {
	labtest.Needs(t, "gcc")
	program := filepath.Join(t.TempDir(), "program")
	words := append([]string{"-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-o", program}, sources...)
	out, err := exec.Command("gcc", words...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
