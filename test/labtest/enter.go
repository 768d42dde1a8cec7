// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"runtime"
	"testing"

	"github.com/vishvananda/netns"
)

// Enter puts the test, with its thread, into a network namespace of its own, which ends
// with the test. Goroutines that the test starts are in the old one.
func Enter(t testing.TB) {
	t.Helper()
	Require(t)
	runtime.LockOSThread()
	old, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Set(old); err != nil {
			t.Error(err)
			return // the thread stays locked, so it ends with the goroutine
		}
		ns.Close()
		old.Close()
		runtime.UnlockOSThread()
	})
}
