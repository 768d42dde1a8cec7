// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is an error in the command line itself: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// UsageErrorf returns an error for which Run prints where help is and returns
// ExitUsage.
func UsageErrorf(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// Exit is an exit code by which a command answers, such as the number of its findings' kind. Run
// prints nothing for it.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// noun makes c, which only has subcommands, refuse other arguments. Cobra by itself
// prints help and calls it a success.
func noun(c *cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.SuggestionsMinimumDistance = 2
	c.ValidArgsFunction = cobra.NoFileCompletions
	c.RunE = func(c *cobra.Command, args []string) error {
		var names []string
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				names = append(names, s.Name())
			}
		}
		if len(args) == 0 {
			return UsageErrorf("which command? %s has %s", c.CommandPath(), strings.Join(names, ", "))
		}
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return UsageErrorf("%s has no command %q; did you mean %s?", c.CommandPath(), args[0], strings.Join(near, " or "))
		}
		return UsageErrorf("%s has no command %q; it has %s", c.CommandPath(), args[0], strings.Join(names, ", "))
	}
	return c
}

// noArgs refuses arguments.
func noArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && c.LocalFlags().Lookup("group") != nil:
		return UsageErrorf("%q: %s takes no arguments: name the group by --group", args[0], c.CommandPath())
	case len(args) > 0:
		return UsageErrorf("%q: %s takes no arguments", args[0], c.CommandPath())
	}
	return nil
}

// oneGroup wants exactly a group's address.
func oneGroup(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return UsageErrorf("%s takes one argument, the group's IP address; %d are given", c.CommandPath(), len(args))
	}
	_, err := parseAddr("group address", args[0])
	return err
}

// groupAndMember wants the addresses of a group and of a member of it.
func groupAndMember(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return UsageErrorf("%s takes two arguments, the group's and the member's IP address; %d are given", c.CommandPath(), len(args))
	}
	if _, err := parseAddr("group address", args[0]); err != nil {
		return err
	}
	_, err := parseAddr("member address", args[1])
	return err
}

// parseAddr parses an IP address that the user gave as what.
func parseAddr(what, text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return ip, UsageErrorf("%s %q is not an IP address", what, text)
	}
	return ip, nil
}
