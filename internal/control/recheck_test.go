// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// The groups of a port that changes are checked a few at a time, each once, and no others.
func TestRechecksOfManyGroups(t *testing.T) {
	const groups, ports = 3*recheckGroups + 7, 3
	dir := t.TempDir()
	writeGroups(t, filepath.Join(dir, "groups"), groups, 2)
	f := newFakeSwitchWith(t, ports, 1, restartConfig(groups)+"state: "+dir+"\n")
	f.control.do(func() {
		c := f.control
		narrow := func() (n int) {
			for _, g := range c.dir.groups {
				if g.mtuText != "" {
					n++
				}
			}
			return n
		}
		var after []int
		for pi, mtu := range []int{1500, 900, 900} { // a port without a change, one with members, one without
			if mtu != c.ports[pi].mtu {
				c.mtuChanged(pi, mtu)
			}
		}
		for range 4 {
			c.continueRechecks()
			after = append(after, narrow())
		}
		if got, want := fmt.Sprint(after), fmt.Sprint([]int{recheckGroups, 2 * recheckGroups, 3 * recheckGroups, groups}); got != want {
			t.Errorf("after each turn %s groups have been checked, want %s", got, want)
		}
		c.continueRechecks()
		if len(c.kernel.rechecks) > 0 {
			t.Errorf("%v are left", c.kernel.rechecks)
		}
	})
	for pi := range 2 {
		f.bridgeChanged(pi, locate.BridgePort{Isolated: true})
	}
	f.eventually("all groups say that their members are isolated", func() bool {
		n := 0
		f.control.do(func() {
			for _, g := range f.control.dir.groups {
				if g.isolationText != "" {
					n++
				}
			}
		})
		return n == groups
	})
}
