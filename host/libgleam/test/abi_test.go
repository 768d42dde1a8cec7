// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestABI: functions and types are those of libgleam.abi. With GLEAM_REWRITE=1 the file is
// written anew: what is new in it may be added, what differs breaks programs that are linked.
func TestABI(t *testing.T) {
	dir := programs(t)
	labtest.Needs(t, "abidw", "abidiff")
	headers := t.TempDir() // without those of the library's inside
	text, err := os.ReadFile("../gleam.h")
	if err == nil {
		err = os.WriteFile(headers+"/gleam.h", text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const golden = "../libgleam.abi"
	file := t.TempDir() + "/abi"
	if os.Getenv("GLEAM_REWRITE") == "1" {
		file = golden
	}
	out, err := exec.Command("abidw", "--exported-interfaces-only", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--drop-private-types",
		"--headers-dir", headers, "--out-file", file, dir+"/libgleam.so.1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("abidiff", golden, file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
