// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli/drawing"
)

func topologyCommand(env *Env) *cobra.Command {
	var out output
	var all bool
	var asking remoteAsking
	c := &cobra.Command{
		Use:   "topology",
		Short: "Neighbour switches, by the hellos at the ports, and the next hops of members",
		Long: `Shows what this switch knows of other gleamd switches: the state of the link at each
port where hellos are exchanged, the neighbours that are up or have been, and the
gateways of members that are behind other switches. A session has the same number at
both ends; it is a new one when either has started again, or has lost the other.
With --all it asks the neighbours as well, and theirs, by their APIs over TCP (see gleam
group tree), and shows every link of the fabric.`,
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if all {
				return env.wholeTopology(c.Context(), &asking, &out)
			}
			t, err := env.client().Topology(c.Context())
			if err != nil {
				return err
			}
			return out.print(env.Stdout, t, func(w io.Writer) { topologyTable(w, t) })
		},
	}
	out.addTo(c)
	c.Flags().BoolVar(&all, "all", false, "all switches that can be asked, from this one on")
	asking.addTo(c)
	return c
}

// wholeTopology shows the links of all switches.
func (e *Env) wholeTopology(ctx context.Context, asking *remoteAsking, out *output) error {
	x := asking.collector(e)
	defer x.close()
	first := &treeSwitch{client: e.client()}
	x.walk(ctx, first, func(*treeSwitch) bool { return false })
	if first.Topology == nil {
		return errors.New(first.Error)
	}
	return out.print(e.Stdout, x.list, func(w io.Writer) {
		fmt.Fprintln(w, "SWITCH\tAPI\tPORT\tLINK\tNEIGHBOUR\tMTU\tREASON")
		for _, s := range x.list {
			if s.Topology == nil {
				fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t%s\n", s.Switch, text(s.Address), drawing.Clean("does not answer: "+s.Error))
				continue
			}
			for i := range s.Topology.Links {
				l := &s.Topology.Links[i]
				fmt.Fprintln(w, drawing.Clean(s.Switch)+"\t"+text(s.Address)+"\t"+drawing.Clean(l.Port)+"\t"+drawing.Clean(l.State)+"\t"+
					drawing.Clean(text(neighbourAt(s.Topology, l.Port)))+"\t"+fmt.Sprint(l.MTU)+"\t"+drawing.Clean(text(l.Reason)))
			}
		}
	})
}

// neighbourAt returns the ID of the neighbour that is up at a port.
func neighbourAt(t *api.Topology, port string) string {
	for i := range t.Neighbours {
		if n := &t.Neighbours[i]; n.Port == port && n.State == api.LinkUp {
			return n.Switch
		}
	}
	return ""
}

func topologyTable(w io.Writer, t *api.Topology) {
	if t.Switch == "" {
		fmt.Fprintln(w, "this switch has no keys of switches (switch.keys): it exchanges no hellos, and knows no other switch")
		return
	}
	fmt.Fprintf(w, "switch %s\n\n", t.Switch)
	fmt.Fprintln(w, "PORT\tMAC\tMTU\tLINK\tHELLOS SENT\tRECEIVED\tDROPPED\tREASON")
	for i := range t.Links {
		l := &t.Links[i]
		dropped := uint64(0)
		for _, n := range l.Drops {
			dropped += n
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\n", l.Port, l.MAC, l.MTU, l.State, l.Sent, l.Received, dropped, text(l.Reason))
	}
	for i := range t.Links {
		dropTable(w, &t.Links[i])
	}
	fmt.Fprintln(w, "\nNEIGHBOUR\tPORT\tSWITCH\tMAC\tMTU\tSTATE\tSINCE\tHOLD TIME\tSESSION\tREASON")
	for i := range t.Neighbours {
		n := &t.Neighbours[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%v\t%v\t%s\t%s\n",
			n.Number, n.Port, n.Switch, n.MAC, n.MTU, n.State, seconds(n.Age).Round(time.Second), seconds(n.Hold), n.Session, text(n.Reason))
	}
	fmt.Fprintln(w, "\nNEXT HOP\tPORT\tMAC\tSWITCH\tHOSTS\tREASON")
	for i := range t.NextHops {
		h := &t.NextHops[i]
		fmt.Fprintf(w, "%v\t%s\t%s\t%s\t%d\t%s\n", h.Gateway, text(h.Port), text(h.MAC), text(h.Switch), h.Hosts, text(h.Reason))
	}
}

// dropTable shows the hellos of a port that had no effect.
func dropTable(w io.Writer, l *api.Link) {
	for _, reason := range slices.Sorted(maps.Keys(l.Drops)) {
		fmt.Fprintf(w, "\n%s: %d %s", l.Port, l.Drops[reason], reason)
	}
	if l.LastDrop != "" {
		fmt.Fprintf(w, "\n%s: %v ago from %s: %s\n", l.Port, seconds(l.LastDropAge).Round(time.Second), l.LastDropMAC, l.LastDrop)
	}
}
