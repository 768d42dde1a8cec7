// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package command has the command line of gleamd: the program executes it, and the manual page is
// made of it. It is apart from those of gleam, of which the daemon links nothing.
package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// ConfigFile is gleamd's configuration, unless --config names another.
const ConfigFile = "/etc/gleam/gleamd.yaml"

// UsageError is an error in gleamd's command line.
type UsageError struct{ error }

// Gleamd is gleamd's command line, which check and run execute with the configuration's
// file name.
func Gleamd(version string, check func(file string) error, run func(ctx context.Context, file string) error) *cobra.Command {
	var file string
	var checks bool
	c := &cobra.Command{
		Use:   "gleamd",
		Short: "Run a switch for RDMA multicast on this machine's interfaces",
		Long: `gleamd takes RDMA packets for group addresses from the configured interfaces,
replicates them to the groups' members and merges what those answer. All other
traffic stays with the kernel.

tcpdump at a port shows no group traffic: XDP takes it before packet sockets see
it, and copies leave by AF_XDP. tcpdump at the hosts shows it, and gleam port list,
gleam stats and gleam group show count it.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UsageError{fmt.Errorf("%q: gleamd takes no arguments; the configuration is named by --config", args[0])}
			}
			return nil
		},
		Version:       version,
		SilenceErrors: true, // the caller prints them
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			if checks {
				return check(file)
			}
			return run(c.Context(), file)
		},
	}
	c.Flags().StringVarP(&file, "config", "c", ConfigFile, "configuration `file`")
	c.Flags().BoolVar(&checks, "check", false, "say whether the configuration is all right and what on this machine stands in its way, and exit")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError{err} })
	c.CompletionOptions.DisableDefaultCmd = true
	return c
}
