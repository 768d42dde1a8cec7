// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/internal/doctor/checks"
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

// A switch without a state file says when it ends how many groups end with it, and nothing where there are none.
func TestGroupsThatEndWithTheSwitchAreLogged(t *testing.T) {
	for _, groups := range []int{0, 1} {
		f := newFakeSwitch(t, 4, 1)
		f.control.do(func() {
			f.know(4)
			for n := range groups {
				f.register1(n, 3)
			}
		})
		f.stop()
		f.log = nil
		f.control.keepLast()
		want := []string{}
		if groups > 0 {
			want = []string{"groups end with gleamd, as it has no state file: their hosts register them again, or with the key state: a directory they go on after the next start groups1"}
		}
		if !slices.Equal(f.log, want) {
			t.Errorf("%d groups: the log has %q, want %q", groups, f.log, want)
		}
	}
}
