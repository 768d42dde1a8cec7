// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/control"
)

// Counters returns what `gleam explain counter` explains, besides totals: the reasons and exits of
// docs/COUNTERS.md, in its order.
func Counters() (list []cli.Counter) {
	for _, normal := range []bool{true, false} {
		class := cli.CounterLoss
		if normal {
			class = cli.CounterNormal
		}
		for _, r := range control.Reasons() {
			if r.Normal == normal {
				list = append(list, cli.Counter{Name: r.Name, Where: "gleam stats, gleam group show", Class: class, Text: r.Text})
			}
		}
	}
	for r := range bpf.NumReasons {
		list = append(list, cli.Counter{Name: r.String(), Where: "gleam port show (exits of the XDP program)", Class: cli.CounterTotal, Text: r.Text()})
	}
	for r := range fastpath.NumReasons {
		list = append(list, cli.Counter{Name: r.String(), Where: "gleam group show (packets that the fast path left to the workers)", Class: cli.CounterTotal, Text: "the packet was " + r.Text()})
	}
	return list
}
