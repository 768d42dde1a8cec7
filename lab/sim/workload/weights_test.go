// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// TestWeights: each receiver gets its part of each shard once, or whole shards by groups of these, and no host
// sends what it does not have.
func TestWeights(t *testing.T) {
	const trainers, receivers, bytes = 4, 16, 4 * 8 * 1000
	for _, way := range WeightsAlgorithms {
		for _, parts := range []int{1, 8} {
			s := must[*Sync](t)(Weights{Algorithm: way, Bytes: bytes, Trainers: trainers, Receivers: receivers, Parts: parts, Chunk: 300}.New(Contiguous(trainers + receivers)))
			got := map[topology.Node]int64{}
			runIdeal(t, s, 1, func(f Flow, at topology.Node) {
				got[at] += f.Bytes
				if f.Source >= trainers && got[f.Source] == 0 {
					t.Fatalf("%s, %d parts: host %d sends before it has anything", way, parts, f.Source)
				}
			})
			want := int64(bytes / parts)
			if way == "group" {
				want = bytes
			}
			for h := range topology.Node(trainers + receivers) {
				if h < trainers && got[h] != 0 || h >= trainers && got[h] != want {
					t.Errorf("%s, %d parts: host %d gets %d bytes; want %d, trainers 0", way, parts, h, got[h], want)
				}
			}
			if s.Whole() != receivers || len(s.Trainers()) != trainers {
				t.Errorf("%s, %d parts: %d receivers have all, of %d trainers", way, parts, s.Whole(), len(s.Trainers()))
			}
		}
	}
	for _, w := range []Weights{{Algorithm: "ring"}, {Algorithm: "bus", Bytes: 1e6, Trainers: 2, Receivers: 2, Parts: 1, Chunk: 100}, {Algorithm: "ring", Bytes: 1e6, Trainers: 2, Receivers: 3, Parts: 2, Chunk: 100}} {
		if _, err := w.New(Contiguous(w.Trainers + w.Receivers)); err == nil {
			t.Errorf("%+v is accepted", w)
		}
	}
}
