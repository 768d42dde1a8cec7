// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

func portShowCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "One port: how it is attached, its egress queue, and what the XDP program did",
		Args:  onePortArg, ValidArgsFunction: env.completePorts,
		RunE: func(c *cobra.Command, args []string) error {
			ports, err := env.client().Ports(c.Context())
			if err != nil {
				return err
			}
			i := slices.IndexFunc(ports, func(p api.Port) bool { return p.Name == args[0] })
			if i < 0 {
				return fmt.Errorf("no port %s: see `gleam port list`", args[0])
			}
			return out.print(env.Stdout, &ports[i], func(w io.Writer) {
				portSummary(w, &ports[i])
				fmt.Fprintln(w)
				ringTable(w, ports[i:i+1])
				xdpTable(w, ports[i:i+1])
			})
		},
	}
	out.addTo(c)
	return c
}

func portSummary(w io.Writer, p *api.Port) {
	row := func(key, format string, args ...any) { fmt.Fprintf(w, key+"\t"+format+"\n", args...) }
	e := &p.Egress
	row("port", "%s, interface %d", p.Name, p.Ifindex)
	row("MAC", "%s", p.MAC)
	row("MTU", "%d bytes", p.MTU)
	if why := cmp.Or(p.Reason, p.Unheard); why != "" {
		row("state", "%s: %s", watch.PortState(p), why)
	} else {
		row("state", "%s", watch.PortState(p))
	}
	row("XDP", "%s, AF_XDP %s, RX queues: %d", p.XDPMode, afXDP(p), p.Queues)
	row("transmits", "worker %d", p.Worker)
	row("VLAN", "%s", vlan(p.VLAN))
	row("bridge", "%s", cmp.Or(p.Bridge, "none"))
	row("may send", "%s", allowed(&p.Allow))
	row("frames", "%d in, %d out", p.RxFrames, p.TxFrames)
	row("rate", "%v", p.Rate)
	k := p.KernelCounters()
	row("lost at sockets", "%d: %d as the worker was late, %d for want of frames, %d otherwise", k.Dropped(), k.RXRingFull, k.FillEmpty, k.RXDropped)
	if d := p.Device; d != nil {
		row("interface", "%d packets in, %d out; dropped: %d in, %d out; missed: %d; errors: %d in, %d out", d.RXPackets, d.TXPackets, d.RXDropped, d.TXDropped, d.RXMissed, d.RXErrors, d.TXErrors)
	}
	row("egress queue", "%d bytes in %d frames, of %d and %d; %d bytes at most so far", e.Bytes, e.Frames, e.MaxBytes, e.MaxFrames, e.MaxDepthBytes)
	row("dropped there", "%d; %d times left in a repair store instead", e.Dropped, e.Deferred)
	if e.ECNKMax == 0 {
		row("ECN", "off")
	} else {
		row("ECN", "%d marked; from %d bytes on, %g at %d, all above", e.CEMarked, e.ECNKMin, e.ECNPMax, e.ECNKMax)
	}
	if f := p.FastPath; f != nil {
		row("fast path", "%s; %d copies sent, %d lost by the driver", usage(f), f.Sent, f.Lost)
	}
}

// allowed lists the hosts that may send by a port.
func allowed(a *api.Allow) string {
	var words []string
	if len(a.Addresses) > 0 {
		words = append(words, "addresses "+strings.Trim(fmt.Sprint(a.Addresses), "[]"))
	}
	if len(a.MACs) > 0 {
		words = append(words, "MACs "+strings.Join(a.MACs, " "))
	}
	if len(words) == 0 {
		return "everybody"
	}
	return strings.Join(words, ", ")
}

func portSetCommand(env *Env) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "set NAME --rate RATE",
		Short: "Change a port, until gleamd ends",
		Long: `The rate is that of a link: 100mbit lets as many group frames out as a
100 Mbit/s Ethernet would. Other traffic of the interface is not limited.`,
		DisableFlagsInUseLine: true,
		Args:                  onePortArg, ValidArgsFunction: env.completePorts,
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("rate") {
				return UsageErrorf("nothing to change: give --rate")
			}
			r, err := linkrate.Parse(to)
			if err != nil {
				return UsageErrorf("--rate %q: %w", to, err)
			}
			if err := env.client().SetPort(c.Context(), args[0], &api.SetPort{Rate: &r}); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "port %s: rate %v\n", args[0], r)
			return nil
		},
	}
	c.Flags().StringVar(&to, "rate", "", "`RATE` such as 100mbit or 2.5gbit, or none")
	c.RegisterFlagCompletionFunc("rate", cobra.NoFileCompletions)
	return c
}

// onePortArg wants exactly a port's name.
func onePortArg(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return UsageErrorf("%s takes one argument, the port's name; %d are given", c.CommandPath(), len(args))
	}
	if args[0] == "" || strings.Contains(args[0], "/") {
		return UsageErrorf("%q is not the name of a port", args[0])
	}
	return nil
}

// completePorts offers the daemon's ports as completeGroups does its groups.
func (e *Env) completePorts(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var names []string
	if len(args) == 0 {
		ports, _ := e.client().Ports(ctx) // none, if there is no daemon
		for i := range ports {
			if strings.HasPrefix(ports[i].Name, begun) {
				names = append(names, ports[i].Name+"\t"+watch.PortState(&ports[i]))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
