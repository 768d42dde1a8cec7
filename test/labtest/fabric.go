// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gleam-rdma/gleam/internal/tools/lab/fabric"
)

var installFRR = sync.OnceValues(func() (string, error) {
	if fabric.FRRInstalled() == nil {
		return "", nil
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	need := filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "scripts", "need")
	out, err := exec.Command(need, "/usr/lib/frr/zebra:frr", "nsenter:util-linux").CombinedOutput()
	return string(out), err
})

// FRR installs FRR, or makes the test Unavailable.
func FRR(t testing.TB) {
	t.Helper()
	Require(t)
	if out, err := installFRR(); err != nil {
		Unavailable(t, "needs FRR, which cannot be installed: %v: %s", err, out)
	}
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
