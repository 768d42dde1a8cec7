// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// The negative control of the tests with rdma_rxe fits the core, and builds: a rename in
// the core fails here, and not only in the emulated machine.
func TestNegativeControlFits(t *testing.T) {
	labtest.Needs(t, "patch")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, patched, overlay := filepath.Join(root, "mcast/feedback.go"), filepath.Join(dir, "feedback.go"), filepath.Join(dir, "overlay.json")
	apply := exec.Command("patch", "-s", "-o", patched, source, filepath.Join(root, "test/rxe/first-ack.patch"))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("test/rxe/first-ack.patch does not fit mcast/feedback.go: write it anew: %v\n%s", err, out)
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {source: patched}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "./mcast")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the patched core does not build: %v\n%s", err, out)
	}
}
