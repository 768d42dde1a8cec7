// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// switchCounts has gleamd's counters at one time.
type switchCounts struct {
	stats *api.Stats
	fast  uint64 // packets that XDP has replicated
	slow  string // why it does not replicate the group's now; with --fast-path
}

// readCounts asks the switch of the source.
func (r *run) readCounts(ctx context.Context) (*switchCounts, error) {
	stats, err := r.client.Stats(ctx)
	if err != nil {
		return nil, err
	}
	c := &switchCounts{stats: stats}
	if c.fast, err = testbed.FastPackets(ctx, r.client); err != nil || !r.opts.FastPath {
		return c, err
	}
	if g, err := r.client.Group(ctx, r.group); err == nil && g.FastPath != nil { // it may have failed
		c.slow = g.FastPath.Reason
	}
	return c, nil
}

// difference is what happened from before to after.
func difference(before, after *switchCounts) Switch {
	a, b := before.stats, after.stats
	s := Switch{
		FastRx: after.fast - before.fast,
		Rx:     b.Rx - a.Rx, Copies: b.Copies - a.Copies,
		FeedbackIn: b.FeedbackIn - a.FeedbackIn, FeedbackOut: b.FeedbackOut - a.FeedbackOut,
		Drops: make(map[string]uint64),
	}
	if s.FastRx == 0 {
		s.FastReason = after.slow
	}
	for _, counts := range []map[string]uint64{b.Normal, b.Drops} {
		for name, n := range counts {
			if d := n - a.Unserved(name); d > 0 {
				s.Drops[name] = d
			}
		}
	}
	return s
}
