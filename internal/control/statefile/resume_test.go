// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile_test

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
)

// Two members send at once while packets are lost, and the switch restarts several times at any
// moment. It has the positions that were durable then. All messages complete, and none before
// every receiver has it.
func TestSwitchRestartsAgainAndAgain(t *testing.T) {
	const each, seeds = 25, 200
	restarts := 0
	for _, personality := range []rc.Personality{rc.Strict, rc.RXE} {
		for seed := range uint64(seeds) {
			f := newFabricOf(t, rc.Config{Personality: personality, Timeout: 40 * time.Millisecond, RetryCnt: 7}, probeTimeout, seed)
			f.spec.Stored, f.spec.SourceTimeout, f.loss = true, 250*time.Millisecond, 0.004
			f.start(f.spec)
			f.run(f.now+100*time.Millisecond, 1000)
			f.post(0, each)
			f.post(1, each)
			for range f.random.IntN(5) {
				f.run(f.now+time.Second, f.random.IntN(400))
				f.arrive()
				f.due, f.number = nil, 0
				spec := f.spec
				spec.Resume = f.inFile
				f.start(spec)
				restarts++
			}
			end := f.now + 20*time.Second
			for n := 0; f.completed() < 2*each && n < 5000; n++ {
				f.run(end, 20)
				f.check(seed)
			}
			for i, h := range f.hosts {
				if want := each * 2; i < 2 && (h.failed || h.completed != each || h.received != each) || i == 2 && h.received != want {
					t.Fatalf("%v, seed %d: host %d: failed %v, %d of %d messages complete, %d received; %+v", personality, seed, i, h.failed, h.completed, each, h.received, f.events)
				}
			}
		}
	}
	t.Logf("%d transfers of two sources, %d restarts", 2*seeds, restarts)
}

// check fails if a message is complete that some host does not have.
func (f *fabric) check(seed uint64) {
	for i, h := range f.hosts {
		sum := 0
		for j, o := range f.hosts {
			if j != i {
				sum += o.completed
			}
		}
		if h.received < sum {
			f.t.Fatalf("seed %d: %d messages to host %d are complete, and it has %d", seed, sum, i, h.received)
		}
	}
}

// completed returns the number of messages that are complete.
func (f *fabric) completed() (n int) {
	for _, h := range f.hosts {
		n += h.completed
	}
	return n
}
