// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/internal/cli/port"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

const (
	runDir = "/run/gleam-lab/bench-replicate" // a directory for each run
	// qpTimeout is 268 ms: what eight queue pairs have under way waits up to 100 ms for a link of 100 Mbit/s.
	qpTimeout = 16
	timeout   = 20 * time.Second // longest wait without progress
)

// groupIP is that of each group; one exists at a time.
var groupIP = netip.MustParseAddr("10.77.254.1")

// Run measures every case once in each round. say gets progress messages.
func Run(ctx context.Context, o Options, here machine.Machine, say io.Writer) (_ *Result, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	st, err := testbed.Build(ctx, testbed.Config{
		Dir: runDir, Gleamd: o.Gleamd, FastPath: o.FastPath,
		Star: lab.StarConfig{Hosts: slices.Max(o.Replicas) + 1, MTU: testbed.PortMTU(o.MTU), Rate: o.Rate},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	cases := o.cases()
	samples := make(map[writeCase][]*perf.Size)
	start := time.Now()
	for round := range o.Rounds {
		for i, c := range cases {
			z, err := measure(ctx, &o, st, c)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			samples[c] = append(samples[c], z)
			if i == 0 {
				fmt.Fprintf(say, "round %d of %d, %d measurements; %v so far\n", round+1, o.Rounds, len(cases), time.Since(start).Round(time.Second))
			}
		}
	}
	return summarize(&o, here, samples), nil
}

// measure runs one test of gleam perf.
func measure(ctx context.Context, o *Options, st *testbed.Testbed, c writeCase) (*perf.Size, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	local := perf.Local{Backend: port.Soft, QPTimeout: qpTimeout, Timeout: timeout}
	local.Host = endpoint.HostConfig{Deadline: timeout, Auth: st.Key.Auth()}
	send := &perf.SendOptions{Params: perf.Defaults(perf.Replicate), Local: local}
	send.Mode, send.Size, send.Depth, send.Duration, send.PathMTU = c.mode, c.size, c.depth, o.Duration, o.MTU
	if c.mode == perf.Group {
		send.GroupIP = groupIP
	}
	errs := make([]error, c.replicas)
	var replicas sync.WaitGroup
	for i := range errs {
		h := st.Star.Hosts[i+1]
		at := netip.AddrPortFrom(h.IPv4, perf.DefaultPort).String()
		send.Receivers = append(send.Receivers, at)
		listen := &perf.ListenOptions{Params: perf.Defaults(perf.Replicate), Local: local, Address: at, Say: func(string) {}}
		replicas.Go(func() { errs[i] = h.NS.Do(func() error { return perf.Listen(ctx, listen) }) })
	}
	res, err := lab.In(st.Star.Hosts[0].NS, func() (*perf.Result, error) { return perf.Send(ctx, send) })
	if err != nil {
		cancel() // replicas that the sender has not reached
	}
	replicas.Wait()
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return res.Sizes[0], nil
}
