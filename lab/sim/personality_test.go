// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// TestPersonalitiesKeepGoodput: with one packet in 1,000 lost on each link, a broadcast of
// hosts of each personality takes hardly longer than one of strict hosts, which ask for ACKs
// as often as each of them does by itself.
func TestPersonalitiesKeepGoodput(t *testing.T) {
	lossy := topology.LeafSpine(4, 2, 4)
	lossy.Loss = 1e-3
	fabric := build(t, lossy)
	const bytes, seeds = 2000 * 4096, 8
	goodput := map[rc.Personality]float64{}
	for _, p := range rc.Personalities() {
		qp, err := rc.New(rc.Config{Personality: p, PMTU: 4096, LocalQPN: 0x11, DestQPN: 0x12})
		if err != nil {
			t.Fatal(err)
		}
		own := qp.Config()
		took := Time(0)
		for seed := range uint64(seeds) {
			c := Config{
				Topology: fabric, Program: broadcast(bytes, every(1, 16)...), Seed: seed, Repair: mcast.RepairSpec{Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4},
				Host: Host{Personality: p, Timeout: time.Millisecond, AckEvery: own.AckReqEvery, Window: max(1024, own.MaxUnacked)},
			}
			r := run(t, c).Result()
			if r.Delivered != 15 || r.Completed != 1 || r.Failed != 0 {
				t.Fatalf("%v, seed %d: %+v: want one flow to 15 receivers", p, seed, r)
			}
			took += r.LastDelivered
		}
		goodput[p] = seeds * float64(onPath(4, bytes)) / float64(took)
	}
	for _, p := range rc.Personalities() {
		share := goodput[p] / goodput[rc.Strict]
		t.Logf("%-16v goodput %.3f, %.3f of strict's", p, goodput[p], share)
		if share < 0.9 {
			t.Errorf("%v: %.3f of strict's goodput", p, share)
		}
	}
}
