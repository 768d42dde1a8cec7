// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func groupCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:     "group",
		Aliases: []string{"groups"},
		Short:   "The registered groups and how their transfers stand",
	}
	c.AddCommand(groupListCommand(env), groupShowCommand(env), groupRegisterCommand(env), groupCreateCommand(env), groupDeleteCommand(env),
		groupTreeCommand(env), groupAddMemberCommand(env), groupRemoveMemberCommand(env), groupMoveMemberCommand(env))
	return c
}

func groupDeleteCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "delete IP",
		Short: "Forget a group: its packets are dropped from now on",
		Args:  oneGroup, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			ip := netip.MustParseAddr(args[0]) // oneGroup has parsed it
			if err := env.client().Delete(c.Context(), ip); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "group %s deleted\n", ip)
			return nil
		},
	}
}

// completeGroups offers the daemon's groups where a command takes one. A shell waits
// for it, so it gives up soon, without output, if there is no daemon.
func (e *Env) completeGroups(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	groups, err := e.client().Groups(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ips []string
	for _, g := range groups {
		if strings.HasPrefix(g.IP.String(), begun) {
			ips = append(ips, fmt.Sprintf("%s\t%s, %d members", g.IP, g.State, len(g.Members)))
		}
	}
	return ips, cobra.ShellCompDirectiveNoFileComp
}
