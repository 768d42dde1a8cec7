// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
)

// createFlags are the texts of `group create`'s flags, as registerFlags are those of
// `group register`.
type createFlags struct {
	group, port, expect, pmtu, policy, deadAfter, window, key, wait, repair, listen, replies, sessions string
	from, members                                                                                      []string
	strip                                                                                              bool
}

func groupCreateCommand(env *Env) *cobra.Command {
	var f createFlags
	c := &cobra.Command{
		Use:                   "create --group IP --port PORT --from PREFIX (--expect N | --listen PORT --member IP[:PORT] …) …",
		DisableFlagsInUseLine: true,
		Short:                 "Let programs join a group by connecting to it by RDMA-CM",
		Long: `Lets programs that use librdmacm join a group, in one of two ways.

With --expect everybody connects: each calls rdma_connect to the group's IP address
and port, and is connected when the expected number of members has done so. What one of them sends then reaches all others. A member leaves by
rdma_disconnect, or when it ends, and another one may take its place. When all have
left, the next ones may connect; group delete ends that.

With --member one program connects and many listen: when it calls rdma_connect to the
group's IP address and port, gleamd connects in the group's name to each member, a
program that waits in rdma_listen, and answers when all have accepted. What the first
one sends reaches all. If a member rejects, or does not answer within --wait, the
program is rejected, with the reason; a member whose program does not listen yet is
waited for. --replies says what becomes of data that members
send: refuse answers it by a NAK, leader passes that of the first member to the program
and acknowledges and drops that of the others, so that programs which expect answers
work, and source lets each member be the source in turns. A program that connects several times needs as many --sessions: each beyond the first
takes the address after the one before it, which has to be free.

The hosts need no software of Gleam. With --from, every host whose address is in
one of the prefixes may connect; members that listen need not be. With --key-id, only programs whose private data is
authentic may connect; docs/CM.md has its layout.

With state in the configuration of gleamd the group is there after a restart of
gleamd, and members that have connected stay in it; connections of a program with
members that listen end, and it may connect again. Without state the group has to be
created again.`,
		Example: `  gleam group create --group 10.77.254.1 --port 7471 --expect 3 --from 10.77.0.0/24
  gleam group create --group 10.77.254.1 --port 7471 --from 10.77.0.1 --listen 7471 --member 10.77.0.2 --member 10.77.0.3`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("key") && env.Remote.Address == "" {
				return UsageErrorf("--key is the file of the private key for --address: name the key of the members' private data by --key-id")
			}
			g, err := f.parse()
			if err != nil {
				return usageError{err}
			}
			if err := env.client().CreateGroup(c.Context(), g); err != nil {
				return err
			}
			if n := len(g.Listeners); n > 0 {
				fmt.Fprintf(env.Stderr, "group %s waits for a program at port %d, and connects it with %d members\nuntil then gleam group show %s has it, gleam group list does not\n", g.Group, g.Port, n, g.Group)
			} else {
				fmt.Fprintf(env.Stderr, "group %s waits for %d members at port %d\nuntil all have connected, gleam group show %s says who has; gleam group list has it then\n", g.Group, g.Expect, g.Port, g.Group)
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.group, "group", "", "GroupIP, an `IP` address: unicast, in one of the switch's group prefixes (required)")
	fl.StringVar(&f.port, "port", "", "RDMA-CM `port` that programs connect to (required)")
	fl.StringVar(&f.expect, "expect", "", "`number` of members that connect, the source included")
	fl.StringArrayVar(&f.members, "member", nil, "`IP[:PORT]` of a program that listens")
	fl.StringVar(&f.listen, "listen", "", "`port` that members without one listen at")
	fl.StringVar(&f.replies, "replies", "", "`refuse|leader|source`: what becomes of data that listening members send (default refuse)")
	fl.StringVar(&f.sessions, "sessions", "", "`number` of connections at once to listening members (default 1)")
	fl.BoolVar(&f.strip, "strip", false, "withhold the connecting program's private data from listening members")
	fl.StringArrayVar(&f.from, "from", nil, "`prefix` or address that members come from; required without --key-id")
	fl.StringVar(&f.key, "key-id", "0", "`id` of the key that members' private data is authentic under; 0: they need none")
	fl.StringVar(&f.wait, "wait", "", "`time` that a member waits for the others (default 1m)")
	fl.StringVar(&f.pmtu, "pmtu", "0", "path MTU in `bytes`; 0: that of the first member")
	fl.StringVar(&f.policy, "policy", api.PolicyStrict, "`strict|evict|quorum:K`, as for group register")
	fl.StringVar(&f.deadAfter, "dead-after", "", "`time`, or never: how long a silent member is waited for while others move (default 100ms, under strict 10s)")
	fl.StringVar(&f.repair, "repair", "on", "`on|off`: whether the switch repairs losses from its own memory")
	fl.StringVar(&f.window, "window", "", "memory range that sources WRITE to: `va=N,len=N,rkey=N`; members give theirs in their private data")
	c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{api.PolicyStrict, api.PolicyEvict, api.PolicyQuorum + ":2"}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("repair", cobra.FixedCompletions([]string{"on", "off"}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("replies", cobra.FixedCompletions([]string{api.RepliesRefuse, api.RepliesLeader, api.RepliesSource}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"group", "port", "expect", "member", "listen", "sessions", "from", "key-id", "wait", "pmtu", "dead-after", "window"} {
		c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

// parse reads the flags and checks the whole as the daemon will.
func (f *createFlags) parse() (*api.CreateGroup, error) {
	r := registerFlags{group: f.group, qpn: fmt.Sprint(api.DefaultQPN), pmtu: "0", policy: f.policy, deadAfter: f.deadAfter, window: f.window, repair: f.repair, lagPSNs: "0", timeout: "0", retries: "0"}
	common, err := r.common()
	if err != nil {
		return nil, err
	}
	g := &api.CreateGroup{Group: common.Group, Policy: common.Policy, DeadAfterMS: common.DeadAfterMS, Window: common.Window, NoRepair: common.NoRepair}
	for _, x := range []struct {
		flag, text string
		bits       int
		set        func(uint64)
	}{
		{"port", f.port, 16, func(n uint64) { g.Port = uint16(n) }}, {"expect", f.unlessListening(f.expect), 16, func(n uint64) { g.Expect = int(n) }},
		{"sessions", cmp.Or(f.sessions, "0"), 16, func(n uint64) { g.Sessions = int(n) }},
		{"key-id", f.key, 16, func(n uint64) { g.Key = uint16(n) }}, {"pmtu", f.pmtu, 16, func(n uint64) { g.PMTU = int(n) }},
	} {
		if x.text == "" && x.flag == "expect" {
			return nil, errors.New("--expect and --member are missing: give the number of members that connect, or those that listen")
		}
		if x.text == "" {
			return nil, fmt.Errorf("--%s is missing", x.flag)
		}
		n, err := parseNumber(x.text, x.bits)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", x.flag, err)
		}
		x.set(n)
	}
	for _, text := range f.from {
		p, err := netip.ParsePrefix(text)
		if !strings.Contains(text, "/") {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--from: %q is neither a prefix nor an address", text)
		}
		g.From = append(g.From, p.Masked())
	}
	if err := f.parseListeners(g); err != nil {
		return nil, err
	}
	if f.wait != "" {
		d, err := time.ParseDuration(f.wait)
		if err != nil || d < time.Millisecond || d%time.Millisecond != 0 {
			return nil, fmt.Errorf("--wait: %q is not a time of whole milliseconds, such as 30s", f.wait)
		}
		g.WaitMS = int(d / time.Millisecond)
	}
	g.Default()
	if err := g.Validate(); err != nil {
		return nil, r.inFlags(err)
	}
	return g, nil
}

// unlessListening returns the number that --expect gives, which members that listen make
// needless.
func (f *createFlags) unlessListening(expect string) string {
	if len(f.members) > 0 && expect == "" {
		return "0"
	}
	return expect
}

// parseListeners reads the flags of members that listen.
func (f *createFlags) parseListeners(g *api.CreateGroup) error {
	g.Replies, g.Strip = f.replies, f.strip
	var port uint64
	if f.listen != "" {
		var err error
		if port, err = parseNumber(f.listen, 16); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
	}
	for _, text := range f.members {
		a, err := netip.ParseAddr(text)
		at := netip.AddrPortFrom(a, uint16(port))
		if err != nil {
			if at, err = netip.ParseAddrPort(text); err != nil {
				return fmt.Errorf("--member: %q is neither an address nor one with a port, such as 10.77.0.2:7471 or [fd77::2]:7471", text)
			}
		}
		g.Listeners = append(g.Listeners, at)
	}
	return nil
}
