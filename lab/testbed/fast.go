// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
)

// fastPathOn is a line of configuration.
const fastPathOn = "fast_path: auto\n"

// FastPackets returns the number of packets that XDP has replicated in a switch, of all groups.
func FastPackets(ctx context.Context, c *api.Client) (n uint64, err error) {
	ports, err := c.Ports(ctx)
	for i := range ports {
		n += ports[i].XDP[bpf.FastRoCEv2.String()]
	}
	return n, err
}
