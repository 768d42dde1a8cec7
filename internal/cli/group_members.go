// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

func groupAddMemberCommand(env *Env) *cobra.Command {
	var member string
	var replace bool
	c := &cobra.Command{
		Use:   "add-member IP --member ip=IP,qpn=N,sq-psn=N,rq-psn=N[,va=N,len=N,rkey=N]",
		Short: "Let a member join a group that was registered by hand, while data flows",
		Long: `The new member receives from the source's next message on; the others see
nothing of it. It has connected its queue pair as in group register.

With --replace it replaces the member with its address, which has
restarted its queue pair and has another QPN, or fresh PSNs.

A member that was removed, left or was evicted comes back with other numbers than
the first time: its queue pair has carried traffic. ibv_query_qp says which PSNs it
has now; a queue pair that was in error is restarted with other PSNs.

A group that a master registered is changed by its master only.`,
		DisableFlagsInUseLine: true,
		Args:                  oneGroup, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			group := netip.MustParseAddr(args[0]) // oneGroup has parsed it
			if member == "" {
				return UsageErrorf("--member is missing: say which queue pair joins")
			}
			m, err := parseMember(member)
			if err != nil {
				return UsageErrorf("--member: %w", err)
			}
			add := &api.AddMember{RegisterMember: m, Replace: replace}
			if err := add.Validate(group); err != nil {
				var fe *api.FieldError
				if errors.As(err, &fe) {
					return UsageErrorf("--member: %s: %s", strings.ReplaceAll(strings.TrimPrefix(fe.Field, "window."), "_", "-"), fe.Problem)
				}
				return usageError{err}
			}
			if err := env.client().AddMember(c.Context(), group, add); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "%s joins group %s at the next message\n", m.IP, group)
			return nil
		},
	}
	c.Flags().StringVar(&member, "member", "", "the member, `ip=IP,qpn=N,…` (required)")
	c.Flags().BoolVar(&replace, "replace", false, "the member with this address has restarted its queue pair")
	c.RegisterFlagCompletionFunc("member", cobra.NoFileCompletions)
	return c
}

func groupRemoveMemberCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "remove-member IP MEMBER",
		Short: "Take a member out of a group that was registered by hand; the others go on",
		Args:  groupAndMember, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			group, member := netip.MustParseAddr(args[0]), netip.MustParseAddr(args[1])
			if err := env.client().RemoveMember(c.Context(), group, member); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "%s removed from group %s\n", member, group)
			return nil
		},
	}
}
