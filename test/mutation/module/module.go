// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package module finds the Go module that a tool runs in, and the tests of its packages.
package module

import (
	"fmt"
	"os"
	"path/filepath"
)

// Root returns the folder of go.mod, at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("where am I: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod here or above; run it inside the module")
		}
		dir = up
	}
}

// Suites returns the folders of the packages whose tests may notice a mutant of the package in dir: its own,
// and those that are tried where it survives these.
func Suites(dir string) []string {
	switch dir {
	case "mcast", "mcast/token", "host/rc":
		return []string{dir, "test/model"}
	case "internal/control/location", "internal/control/store": // hosts that confirm, and a file that fails, are tried with a whole switch
		return []string{dir, "internal/control"}
	}
	return []string{dir}
}
