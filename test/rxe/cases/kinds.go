// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// portKinds has interfaces of the kinds of docs/PORTS.md as ports, in network namespaces of their
// own: test/rxe/kinds.sh, which stands beside this program.
func portKinds(ctx context.Context, _ *bench) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Dir(own)
	c := exec.CommandContext(ctx, "bash", filepath.Join(dir, "kinds.sh"))
	c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}
