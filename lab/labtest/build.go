// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"os"
	"os/exec"
)

// Build builds programs of this module into the folder or file to, as make build
// does: without cgo, which gleamd cannot be confined with.
func Build(to string, packages ...string) error {
	c := exec.Command("go", append([]string{"build", "-o", to}, packages...)...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", packages, err, out)
	}
	return nil
}
