// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// registerFlags are the texts of `group register`'s flags, parsed by us rather
// than by pflag so that every number is read alike and every error names its
// flag, field and text.
type registerFlags struct {
	group, qpn, pmtu, policy, window  string
	deadAfter, lagTime                string
	lagPSNs, timeout, retries, repair string
	members                           []string
	replace                           bool
}

func groupRegisterCommand(env *Env) *cobra.Command {
	var f registerFlags
	c := &cobra.Command{
		Use:                   "register --group IP --member ip=IP,qpn=N,sq-psn=N,rq-psn=N[,va=N,len=N,rkey=N][,receive-only] --member …",
		DisableFlagsInUseLine: true,
		Short:                 "Register a group by hand, for applications that do not register themselves",
		Long: `Registers a group. Every member has connected its RC queue pair to the group's IP
address and QPN, and gives of that queue pair: its number, the PSN that its send
queue uses next (sq-psn) and the one that its receive queue expects next (rq-psn).
Of a queue pair without traffic these are the ones that it was set up with;
traffic changes them, and ibv_query_qp says what they are by now. A group
registered by hand has no lease: it stays until it is deleted, or gleamd ends.
After a restart of gleamd it is registered again with the numbers of that moment.

Another live group of this address, by whomever it was registered, is replaced
only with --replace, which ends its transfers. The same registration given again
changes nothing. Once the group has carried traffic, numbers of its members, or of
former ones, that are registered again are refused: give those of ibv_query_qp.

Numbers are decimal, or hexadecimal after 0x.

A member with the word receive-only never becomes the source: what it sends goes to
nobody, and is answered with an error (status 10).

For RDMA WRITE, --window is the memory range that sources address, and every
member gives its own va, len and rkey, where the data lands; the one that only
sends need not.

The policy says what a completion at the source promises. strict: every member
has the data, and a member in error fails the group. evict: every member that
was not removed has it. quorum:K: K receivers have it; the others get it as long
as the source itself repeats what they lack.`,
		Example: `  gleam group register --group 10.77.254.1 \
    --member ip=10.77.0.1,qpn=0x11,sq-psn=1000,rq-psn=2000 \
    --member ip=10.77.0.2,qpn=0x12,sq-psn=3000,rq-psn=4000`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := f.parse()
			if err != nil {
				return usageError{err}
			}
			if err := env.client().Register(c.Context(), r); err != nil {
				return explainReject(r, err)
			}
			fmt.Fprintf(env.Stderr, "group %s registered, QPN %s, %d members\n", r.Group, number24(r.QPN), len(r.Members))
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.group, "group", "", "GroupIP, an `IP` address: unicast, in one of the switch's group prefixes (required)")
	fl.StringVar(&f.qpn, "qpn", fmt.Sprintf("%#x", api.DefaultQPN), "virtual queue pair `number` that members are connected to")
	fl.StringVar(&f.pmtu, "pmtu", fmt.Sprint(api.DefaultPMTU), "path MTU in `bytes`: "+rocev2.PathMTUText)
	fl.StringVar(&f.policy, "policy", api.PolicyStrict, "`strict|evict|quorum:K`: what a member's fatal error does: fail the group, or remove the member as long as (K) others are left")
	fl.StringVar(&f.deadAfter, "dead-after", "", "`time`, such as 100ms, or never: how long a silent member is waited for while others move (default 100ms, under strict 10s)")
	fl.StringVar(&f.lagPSNs, "lag-psns", "0", "remove a receiver that is more than this `number` of packets behind another one; 0: never")
	fl.StringVar(&f.lagTime, "lag-time", "", "remove a receiver that for this `time` lacks what another one has (default never)")
	fl.StringVar(&f.timeout, "sender-timeout", "0", "ACK timeout of the members' queue pairs, `exponent` 1 to 31: 4.096 us * 2^n; dead-after is checked against it")
	fl.StringVar(&f.retries, "sender-retries", "0", "transport retries of the members' queue pairs, a `number` 1 to 7")
	fl.StringVar(&f.repair, "repair", "on", "`on|off`: whether the switch repairs losses from its own memory, or leaves it to the sources")
	fl.StringVar(&f.window, "window", "", "memory range that sources WRITE to: `va=N,len=N,rkey=N`")
	fl.BoolVar(&f.replace, "replace", false, "end the live group of this address, if there is another one")
	fl.StringArrayVar(&f.members, "member", nil, "one member, `ip=IP,qpn=N,…`; at least two are required")
	var pmtus []string
	for _, p := range rocev2.PathMTUs() {
		pmtus = append(pmtus, fmt.Sprint(p))
	}
	c.RegisterFlagCompletionFunc("pmtu", cobra.FixedCompletions(pmtus, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{api.PolicyStrict, api.PolicyEvict, api.PolicyQuorum + ":2"}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("repair", cobra.FixedCompletions([]string{"on", "off"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"group", "qpn", "window", "member", "dead-after", "lag-psns", "lag-time", "sender-timeout", "sender-retries"} {
		c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

// explainReject makes sure that a refusal by the daemon names the group, or else the
// reason too.
func explainReject(r *api.Register, err error) error {
	var e *api.Error
	if !errors.As(err, &e) || strings.Contains(e.Message, r.Group.String()) {
		return err
	}
	if e.Reason == "" {
		return fmt.Errorf("group %s rejected: %w", r.Group, err)
	}
	return fmt.Errorf("group %s rejected: %s: %w", r.Group, e.Reason, err)
}
