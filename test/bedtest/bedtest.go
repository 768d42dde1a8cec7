// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package bedtest gives tests testbeds and hosts that close with the test.
package bedtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Star makes a star with a gleamd.
func Star(t testing.TB, c testbed.Config) *testbed.Testbed {
	t.Helper()
	c.Dir = folder(t, c.Dir)
	b, err := testbed.Build(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gleamd: %s", b.Gleamd.Output())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Fabric makes a fabric with a gleamd in each switch. Packets that took their fast path are counted.
func Fabric(t testing.TB, c testbed.FabricConfig) *testbed.Fabric {
	t.Helper()
	c.Dir, c.FastPath = folder(t, c.Dir), c.FastPath || labtest.FastPath()
	f, err := testbed.BuildFabric(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for name, g := range f.Gleamds {
			if t.Failed() {
				t.Logf("%s: %s", name, g.Output())
			}
			n, _ := testbed.FastPackets(ctx, g.Client) // it may have ended
			labtest.CountFast(n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// folder returns dir, or a new folder that gleamd, which becomes another user, may enter.
func folder(t testing.TB, dir string) string {
	t.Helper()
	labtest.Require(t)
	if dir == "" {
		dir = t.TempDir()
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// Open opens hosts.
func Open(t testing.TB, hosts []lab.Host, c testbed.Endpoints) []*testbed.Host {
	t.Helper()
	all, err := testbed.OpenAll(hosts, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = testbed.CloseAll(all) })
	return all
}
