// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package options has the flags and conditions that the commands of `gleam bench` have in common.
package options

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
)

// NoArguments checks that a command has none.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.UsageErrorf("%q: %s takes no arguments", args[0], c.CommandPath())
	}
	return nil
}

// SetQuick sets the values of --quick, by name of flag, for flags that are not given.
func SetQuick(c *cobra.Command, quick map[string]string) error {
	for name, value := range quick {
		if f := c.Flags().Lookup(name); !f.Changed {
			if err := f.Value.Set(value); err != nil {
				return fmt.Errorf("--quick: --%s: %w", name, err)
			}
		}
	}
	return nil
}

// RequireRoot returns an error, with the next step, to a user who is not root.
func RequireRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the benchmark needs root: type `sudo %s`", strings.Join(os.Args, " "))
	}
	return nil
}

// Duplicates reports whether a value is in a list twice.
func Duplicates[T comparable](list []T) bool {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return true
		}
	}
	return false
}
