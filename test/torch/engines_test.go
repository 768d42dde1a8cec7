// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// The two modules of examples/engines, each against its own abstract class: tensors of six types are equal at three
// workers, small ones share broadcasts; a worker is killed and the others go on; a new one catches up, and is in again.
func TestEngines(t *testing.T) {
	for _, engine := range []string{"vllm", "checkpoint"} {
		t.Run(engine, func(t *testing.T) {
			j := newJob(t, 4, 0, "GLEAM_POLICY=evict", "GLEAM_KEEP=1000", "GLEAM_DEAD_AFTER=1500", "GLEAM_QP_TIMEOUT=16")
			start := func(n int, back string) {
				j.run(n, exec.Command(python, absolute(t, "testdata/engines.py"), engine, back))
			}
			members, version, updates, lives := 0, 0.0, [4]int{}, true
			until := func(want func(line) bool) {
				t.Helper()
				for {
					select {
					case <-j.ranks[3].Done():
						if lives {
							t.Fatalf("rank 3 has ended: %v", j.ranks[3].Wait())
						}
					default:
					}
					l := j.next(begins)
					if l.word != "update" || l.values[1] != true {
						t.Fatal(l)
					}
					updates[l.rank]++
					if l.rank == 0 {
						members = len(l.values[2].([]any))
						if buckets := l.number(4) - version; buckets < 2 || 2*buckets > l.number(5) {
							t.Fatalf("%v broadcasts for %v tensors", buckets, l.number(5))
						}
						version = l.number(4)
					}
					if want(l) {
						return
					}
				}
			}
			for n := range j.ranks {
				start(n, "0")
			}
			until(func(line) bool { return min(updates[0], updates[1], updates[2], updates[3]) >= 3 })
			lives = false
			j.kill(3, true)
			until(func(l line) bool { return l.rank == 0 && members == 3 })
			updates = [4]int{}
			until(func(line) bool { return min(updates[0], updates[1], updates[2]) >= 3 })
			start(3, "1")
			lives = true
			until(func(l line) bool { return l.rank == 3 && l.number(3) > 0 })
			until(func(l line) bool { return l.rank == 3 && l.number(3) == 0 && members == 4 })
			if err := os.WriteFile(j.stop(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, l := range j.ended(time.Minute) {
				if l.values[1] != true {
					t.Error(l)
				}
			}
		})
	}
}
