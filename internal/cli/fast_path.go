// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/gleam-rdma/gleam/api"
)

// dataPath names the way of a group's data, and in a word why it is not the fast one.
func dataPath(f *api.FastPath) string {
	if f == nil {
		return "-"
	}
	if f.Word != "" {
		return text(f.Way + ": " + f.Word)
	}
	return text(f.Way)
}

// fastPathRows shows the way of a group's data, and what XDP has replicated of it.
func fastPathRows(row func(key, format string, args ...any), g *api.Group) {
	f := g.FastPath
	if f == nil {
		return
	}
	s := map[string]string{
		api.WayFast: "fast: XDP replicates and stores the data", api.WaySlow: "slow: the worker forwards the data", api.WayNever: "never fast",
	}[f.Way]
	if !f.Since.IsZero() {
		s += ", since " + localTime(f.Since)
	}
	row("data path", "%s", s)
	if f.Reason != "" {
		s := f.Reason
		if f.Word != "" {
			s = f.Word + ": " + s
		}
		if f.Remedy != "" {
			s += "; remedy: " + f.Remedy
		}
		row("why not fast", "%s", s)
	}
	if f.Grants == 0 {
		return
	}
	row("of XDP", "%d of %d data packets in (%s), %d copies out; %d times on the fast path, %d times off it, %d packets of repair store",
		f.Packets, g.Counters.DataIn, share(f.Packets, g.Counters.DataIn), f.Copies, f.Grants, f.Revokes, f.Ring)
	if f.ACKs > 0 || f.ACKsBy != "" {
		s := fmt.Sprintf("%d of receivers in, %d to the source out", f.ACKs, f.Answers)
		if f.ACKsBy != "" {
			s += "; the worker has them now: " + f.ACKsBy
		}
		row("ACKs of XDP", "%s", s)
	}
	if len(f.Left) > 0 {
		row("left to the worker", "%s", countTable(f.Left))
	}
}

// share is n of all in percent.
func share(n, all uint64) string {
	if all == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(min(n, all))/float64(all))
}

// usage says whether the fast path uses a port, or why not.
func usage(f *api.PortFastPath) string {
	if f.Used {
		return "used"
	}
	return "not used: " + text(f.Reason)
}

// fastPathTable shows whether the fast path uses the ports, and what drivers did with the
// copies.
func fastPathTable(w io.Writer, ports []api.Port) {
	if !slices.ContainsFunc(ports, func(p api.Port) bool { return p.FastPath != nil }) {
		return
	}
	fmt.Fprintln(w, "\nPORT\tCOPIES BY XDP\tLOST BY DRIVER\tFAST PATH")
	for i := range ports {
		if p, f := &ports[i], ports[i].FastPath; f != nil {
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", p.Name, f.Sent, f.Lost, usage(f))
		}
	}
}
