// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Bounds of a broadcast to three at links of 200 Mbit/s.
const (
	speedBytes = 64 << 20
	speedRanks = 4
	speedRate  = 200_000_000
	mostSent   = 1.05 // bytes of the sender's link, for one of the tensor
)

// 64 MiB from rank 0 to three others, by a group and by Gloo: the bytes are equal at all, leave the
// sender once, and are there earlier.
func TestSpeed(t *testing.T) {
	labtest.Part(t, "torch")
	ranks, rate := speedRanks, speedRate
	if n, err := strconv.Atoi(os.Getenv("GLEAM_RANKS")); err == nil { // by hand: slower links, so that the CPUs carry more ranks
		ranks, rate = n, speedRate*speedRanks/n
	}
	seconds := make(map[string]float64)
	for _, backend := range []string{"gleam", "gloo"} {
		t.Run(backend, func(t *testing.T) {
			j := newJob(t, ranks, linkrate.Rate(rate), "GLEAM_POLICY=evict")
			j.startAll("speed", backend, "67108864")
			digests := make(map[any]int)
			for _, l := range j.ended(3 * time.Minute) {
				if l.word != "speed" {
					t.Log(l)
					continue
				}
				digests[l.values[2]]++
				if l.rank != 0 {
					continue
				}
				seconds[backend] = l.number(0)
				link, sent := speedBytes*8/float64(rate), l.number(1)/speedBytes
				t.Logf("%s: %.2f s, %.2f of the link's time for one copy, the sender's bytes %.3f ×", backend, l.number(0), l.number(0)/link, sent)
				if backend == "gleam" && sent > mostSent {
					t.Errorf("the sender's link carried %.3f × the tensor, want at most %v", sent, mostSent)
				}
			}
			if len(digests) != 1 {
				t.Errorf("ranks have other bytes: %v", digests)
			}
			for _, n := range digests {
				if n != ranks {
					t.Errorf("%d ranks of %d have the tensor", n, ranks)
				}
			}
		})
	}
	t.Logf("the group is %.1f times as fast as Gloo", seconds["gloo"]/seconds["gleam"])
	if seconds["gleam"] >= seconds["gloo"] {
		t.Errorf("%.2f s by the group, %.2f s by Gloo", seconds["gleam"], seconds["gloo"])
	}
}
