// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

func portCommand(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use:     "port",
		Aliases: []string{"ports"},
		Short:   "The switch's ports",
	}
	c.AddCommand(portListCommand(env), portShowCommand(env), portSetCommand(env), portReleaseCommand(env))
	return c
}

func portListCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "All ports, how they are attached, and what the XDP program did with their packets",
		Long: `Lists the ports, their egress queues and AF_XDP rings, and how many packets took
each exit of the XDP program: xsk_rocev2 and xsk_envelope are group traffic that came
in, pass_other is the kernel's. tcpdump at a port shows no group traffic, since XDP
takes it before packet sockets see it, and copies leave by AF_XDP: look here, at
gleam stats and at gleam group show, or capture at the hosts.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			ports, err := env.client().Ports(c.Context())
			if err != nil {
				return err
			}
			return out.print(env.Stdout, ports, func(w io.Writer) {
				portTable(w, ports)
				fmt.Fprintln(w)
				egressTable(w, ports)
				fmt.Fprintln(w)
				ringTable(w, ports)
				xdpTable(w, ports)
				fastPathTable(w, ports)
			})
		},
	}
	out.addTo(c)
	return c
}

func portTable(w io.Writer, ports []api.Port) {
	fmt.Fprintln(w, "PORT\tIFINDEX\tMAC\tMTU\tSTATE\tXDP\tAF_XDP\tQUEUES\tVLAN\tRX FRAMES\tTX FRAMES\tDOWNS")
	for i := range ports {
		p := &ports[i]
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\n",
			p.Name, p.Ifindex, p.MAC, p.MTU, watch.PortState(p), p.XDPMode, afXDP(p), p.Queues, vlan(p.VLAN), p.RxFrames, p.TxFrames, p.Downs)
	}
}

func afXDP(p *api.Port) string {
	if p.ZeroCopy {
		return "zero-copy"
	}
	return "copy"
}

// egressTable shows the ports' egress queues and their counters.
func egressTable(w io.Writer, ports []api.Port) {
	fmt.Fprintln(w, "PORT\tRATE\tQUEUED BYTES\tFRAMES\tHIGHEST\tLIMIT\tCE MARKED\tDROPPED")
	for i := range ports {
		p, e := &ports[i], &ports[i].Egress
		fmt.Fprintf(w, "%s\t%v\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Name, p.Rate, e.Bytes, e.Frames, e.MaxDepthBytes, e.MaxBytes, e.CEMarked, e.Dropped)
	}
}

// ringTable shows the AF_XDP sockets, and how full their rings are.
func ringTable(w io.Writer, ports []api.Port) {
	fmt.Fprintln(w, "PORT\tDRIVER\tQUEUE\tWORKER\tRX RING\tFILL RING\tTX RING\tCOMPLETION RING")
	for i := range ports {
		p := &ports[i]
		driver := p.Driver
		if driver == "" {
			driver = "-"
		}
		for _, s := range p.Sockets {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", p.Name, driver, s.Queue, s.Worker, ring(s.RX), ring(s.Fill), ring(s.TX), ring(s.Completion))
		}
	}
}

func ring(r api.Ring) string { return fmt.Sprintf("%d of %d", r.Used, r.Size) }

// xdpTable shows the exits of the XDP program that packets have taken.
func xdpTable(w io.Writer, ports []api.Port) {
	head := "\nPORT\tXDP EXIT\tPACKETS"
	for i := range ports {
		for _, reason := range slices.Sorted(maps.Keys(ports[i].XDP)) {
			n := ports[i].XDP[reason]
			if n == 0 {
				continue
			}
			if head != "" {
				fmt.Fprintln(w, head)
				head = ""
			}
			fmt.Fprintf(w, "%s\t%s\t%d\n", ports[i].Name, reason, n)
		}
	}
}
