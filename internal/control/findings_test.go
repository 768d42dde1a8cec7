// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/internal/checks"
)

// The log of a start has what the checks find, with port and remedy, but for what ends the start.
func TestFindingsAreLogged(t *testing.T) {
	var said []string
	e := &Engine{notify: func(warn bool, msg string, kv ...any) { said = append(said, fmt.Sprint(warn, " ", msg, kv)) }}
	e.report([]checks.Finding{
		{Port: "p1", Text: "port is down", Command: "ip link set p1 up"}, {Severe: true, Text: "too old"}, {Note: true, Text: "no time server"}, {Fatal: true, Text: "no interface"},
	})
	if want := []string{"true port is down[port p1 remedy ip link set p1 up]", "true too old[]", "false no time server[]"}; !slices.Equal(said, want) {
		t.Errorf("the log has %q, want %q", said, want)
	}
}
