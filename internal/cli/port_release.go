// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func portReleaseCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "release [PORT...]",
		Short: "Remove what a gleamd that was killed has left in the kernel's tables",
		Long: `gleamd holds members where they are, by permanent entries of the kernel's neighbour
tables and sticky ones of bridges' forwarding databases. They carry a mark (ip -d
neigh: proto 71; bridge fdb: extern_learn sticky static). It removes them with their
groups and when it ends. One that was killed cannot: the next start with the same
ports does it, or this command, as root, without gleamd. XDP programs and sockets
need none: they go with the process.

Without a port it removes all that have the mark. What an operator has entered stays.`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := notServed(c, env, args); err != nil {
				return err
			}
			n, err := env.Release(args...)
			if n > 0 || err == nil {
				fmt.Fprintf(env.Stderr, "%d entries removed\n", n)
			}
			return err
		},
	}
}

// notServed returns an error if a gleamd that answers has one of the ports.
func notServed(c *cobra.Command, env *Env, names []string) error {
	ports, err := env.client().Ports(c.Context())
	if err != nil {
		return nil // no gleamd answers
	}
	for i := range ports {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return n == ports[i].Name }) {
			return &api.Error{Message: fmt.Sprintf("gleamd runs and has port %s: what it holds there goes with its groups, and when it ends", ports[i].Name)}
		}
	}
	return nil
}
