// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// The table of file descriptors grows once for all DEVMAPs that there can be, and not again while they are made.
func TestTableGrowsOnce(t *testing.T) {
	labtest.Require(t)
	size := func() (n int) {
		t.Helper()
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "FDSize:")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	growTable()
	before := size()
	for _, memory := range []int{32 << 20, 1 << 30} {
		m, err := fastpath.New(fastRoom(&config.Config{FastPathMemory: memory}, nil))
		if err == nil {
			err = m.Complete()
		}
		if err != nil {
			t.Fatal(err)
		}
		if now := size(); now != before {
			t.Errorf("with %d MiB the table has grown from %d to %d", memory>>20, before, now)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
