// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func groupMoveMemberCommand(env *Env) *cobra.Command {
	var m api.MoveMember
	c := &cobra.Command{
		Use:   "move-member IP MEMBER [--port PORT] [--mac MAC]",
		Short: "Say by hand that a member has moved to another port, or has another MAC address",
		Long: `A member is pinned where it was registered. If it is seen elsewhere, gleamd sends
it an inquiry there, and it moves if it confirms that by an authenticated envelope. A member
without a program that answers envelopes cannot: it stays where it was, with a
warning in the log, and with stats and group show saying so. This moves it, in all
its groups.

Without --port and --mac it moves to where it was seen last. Make sure first that it
is there: whoever sends one frame in a member's name is seen as well.`,
		DisableFlagsInUseLine: true,
		Args:                  groupAndMember, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			group, member := netip.MustParseAddr(args[0]), netip.MustParseAddr(args[1])
			if err := m.Validate(); err != nil {
				return UsageErrorf("--%w", err)
			}
			if err := env.client().MoveMember(c.Context(), group, member, &m); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "%s has moved\n", member)
			return nil
		},
	}
	c.Flags().StringVar(&m.Port, "port", "", "`port` that the member is behind now")
	c.Flags().StringVar(&m.MAC, "mac", "", "MAC `address` that it has now")
	c.RegisterFlagCompletionFunc("port", cobra.NoFileCompletions)
	c.RegisterFlagCompletionFunc("mac", cobra.NoFileCompletions)
	return c
}
