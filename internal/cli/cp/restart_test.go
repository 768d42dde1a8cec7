// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"path/filepath"
	"sync"
	"testing"
)

// TestSwitchForgets: a gleamd without state is started again in the middle of a copy. The group is made anew, and
// what is missing goes by it.
func TestSwitchForgets(t *testing.T) {
	r := newRig(t, 3)
	file := filepath.Join(t.TempDir(), "file")
	const size = 24 << 20
	fill(t, file, size, 0o644)
	to := []string{t.TempDir(), t.TempDir()}
	for i, d := range to {
		r.receiver(i+1, d)
	}
	o := r.options(2, file)
	var once sync.Once
	restarted := make(chan error, 1)
	o.Progress = func(list []Status) {
		if list[0].Bytes > size/4 {
			once.Do(func() { go func() { restarted <- r.Gleamd.Restart(t.Context()) }() })
		}
	}
	res, err := r.send(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if res.TCP != 0 || res.Group < size {
		t.Errorf("%d bytes by the group and %d by TCP, want %d at least and 0", res.Group, res.TCP, size)
	}
	for _, d := range to {
		same(t, file, filepath.Join(d, "file"))
	}
}
