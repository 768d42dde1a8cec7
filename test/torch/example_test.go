// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The script of examples: a rank is killed and comes back, and the others see both.
func TestExample(t *testing.T) {
	j := newJob(t, 4, 0, "GLEAM_POLICY=evict")
	start := func(n int, args ...string) {
		j.run(n, exec.Command(python, append([]string{absolute(t, "../../examples/torch_weights.py")}, args...)...))
	}
	until := func(rank int, text string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(j.ranks[rank].Output(), text); {
			if time.Now().After(deadline) {
				t.Fatalf("rank %d does not print %q: %s", rank, text, j.ranks[rank].Output())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for n := range j.ranks {
		start(n)
	}
	for n := range j.ranks {
		until(n, "weights 2.0 members [0, 1, 2, 3]")
	}
	j.kill(2, true)
	until(1, "members [0, 1, 3]")
	start(2, "back")
	until(2, "members [0, 1, 2, 3]")
}
