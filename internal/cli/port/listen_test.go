// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package port

import (
	"net"
	"strings"
	"testing"
)

// TestListenTwice: who listens second is told how to find the first.
func TestListenTwice(t *testing.T) {
	ln, err := Listen("127.0.0.1:0", "gleam x")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, p, _ := net.SplitHostPort(ln.Addr().String())
	_, err = Listen(ln.Addr().String(), "gleam x")
	if err == nil || !strings.Contains(err.Error(), "perhaps another `gleam x` (ss -ltnp 'sport = :"+p+"' names it)") {
		t.Error(err)
	}
}
