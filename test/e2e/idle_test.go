// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Answers to envelopes leave at once, although nothing else moves and the workers
// sleep: a registration takes some round trips, and none of the seconds after which a
// sleeping worker wakes by itself.
func TestIdleSwitchAnswersAtOnce(t *testing.T) {
	for _, workers := range []int{1, 2} {
		machine, best := labtest.Watch(), time.Hour
		for range 3 { // a busy machine may be slow once
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, workers: workers, config: "worker: {cpu: [" + []string{"", "-1", "-1, -1"}[workers] + "], spin: 0s}\n"})
			start := time.Now()
			r.joinByMaster(nil)
			if best = min(best, time.Since(start)); best < 400*time.Millisecond {
				break
			}
		}
		t.Logf("%d workers: registered in %v", workers, best.Round(time.Millisecond))
		if best > 400*time.Millisecond {
			machine.Timing(t, "%d workers: it took %v to register with an idle switch, want at most 400 ms", workers, best)
		}
	}
}
