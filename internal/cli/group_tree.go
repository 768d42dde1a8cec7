// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Formats of gleam group tree alone.
const (
	formatDot = "dot" // the format of Graphviz
	formatSVG = "svg"
)

// givenSwitches are the APIs of switches that --switch names.
type givenSwitches map[string]string

func (g givenSwitches) String() string { return "" }

// Set implements pflag.Value.
func (g givenSwitches) Set(s string) error {
	id, address, ok := strings.Cut(s, "=")
	if _, _, err := net.SplitHostPort(address); !ok || err != nil || !switchID.MatchString(id) {
		return fmt.Errorf("want ID=HOST:PORT, the ID with 16 hexadecimal digits as gleam topology shows it")
	}
	g[id] = address
	return nil
}

// Type implements pflag.Value.
func (g givenSwitches) Type() string { return "ID=HOST:PORT" }

func groupTreeCommand(env *Env) *cobra.Command {
	var out Output
	var interval time.Duration
	var asking remoteAsking
	c := &cobra.Command{
		Use:   "tree IP",
		Short: "The tree of switches that a group's data takes, with what each of them has",
		Long: `Asks this gleamd, and by their APIs over TCP the others of the group's tree, and draws
the way of the data from the source: at each switch the packets in and out, what it has
repaired and what is acknowledged, and at each leg to a switch or a member the PSN that is
acknowledged, how far that is behind, and how fast it goes.

Switches tell their neighbours where their APIs are (api.listen, api.advertise); others are
named by --switch. They want a certificate: see --certificate. One that does not answer is
in the tree with the reason. Rates are measured over --interval; bytes are those of packets
of the group's path MTU.`,
		Args: oneGroup, ValidArgsFunction: env.completeGroups,
		RunE: func(c *cobra.Command, args []string) error {
			ip := netip.MustParseAddr(args[0]) // oneGroup has parsed it
			x := asking.collector(env)
			x.group = ip
			defer x.close()
			if err := x.collect(c.Context(), env.client()); err != nil {
				return err
			}
			if interval > 0 {
				if err := x.sample(c.Context(), interval); err != nil {
					return err
				}
			}
			t := newGroupTree(ip, x.list)
			switch {
			case out.Is(formatSVG):
				return t.picture().WriteSVG(env.Stdout)
			case out.Is(formatDot):
				return t.picture().WriteDot(env.Stdout)
			}
			return out.Print(env.Stdout, t, t.text().Write)
		},
	}
	f := c.Flags()
	out.AddTo(c, formatDot, formatSVG)
	f.DurationVar(&interval, "interval", time.Second, "time over which rates are measured; 0: none are")
	asking.addTo(c)
	return c
}

// remoteAsking is how several switches are asked.
type remoteAsking struct {
	given   givenSwitches
	timeout time.Duration
}

func (a *remoteAsking) addTo(c *cobra.Command) {
	a.given = make(givenSwitches)
	c.Flags().DurationVar(&a.timeout, "timeout", 3*time.Second, "time that each switch has to answer")
	c.Flags().Var(a.given, "switch", "a switch's API over TCP, for one that has not told its neighbours; may be repeated")
}

func (a *remoteAsking) collector(e *Env) *collector {
	return &collector{remote: &e.Remote, given: a.given, timeout: a.timeout}
}
