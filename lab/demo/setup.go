// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// runDir holds a directory for each demo: configuration, key and socket. A gleamd that reloads
// its configuration is no more root, so the way there is open to all.
const runDir = "/run/gleam-demo"

// build makes the lab with a running gleamd.
func build(ctx context.Context, o *Options) (*testbed.Testbed, error) {
	c := testbed.Config{Dir: runDir, Star: lab.StarConfig{Hosts: o.Members, MTU: testbed.PortMTU(o.MTU)}, Gleamd: o.Gleamd, FastPath: o.FastPath}
	if o.Keep {
		c.Star.Name = fmt.Sprintf("demo%d", os.Getpid())
	}
	if c.State = o.Web != ""; c.State {
		c.More = "web: {listen: " + pageAddress + "}\n"
	}
	s, err := testbed.Build(ctx, c)
	if err != nil {
		return nil, err
	}
	s.Keep = o.Keep
	return s, nil
}

// keptDir is the directory of a lab that has a name.
func keptDir(lab string) string { return testbed.Kept(runDir, lab) }
