// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/analytic"
	"github.com/gleam-rdma/gleam/lab/sim/parallel"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// TestRowsAgreeWithModels simulates the paper's smaller studies, and its matrix of 8 x 8 with less bytes: the rows
// that have an analytic value with a tolerance are within it.
func TestRowsAgreeWithModels(t *testing.T) {
	var all results
	for _, name := range []string{"mpi.yaml", "storage.yaml", "testbed.yaml", "testbed-swap.yaml", "share.yaml", "matrix-group.yaml"} {
		text, err := paperFiles.ReadFile("paper/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "matrix-group.yaml" {
			text = bytes.ReplaceAll(text, []byte("63.5MB"), []byte("4MB"))
		}
		s, err := spec.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Points()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			if v := vars(p); v["bytes"] == "1000000000" || v["n"] == "16" || name == "share.yaml" && (v["communicators"] == "2") != (v["control"] == "dcqcn") {
				continue
			}
			r, err := runPoint(t.Context(), p, options{partitions: 1, stderr: &bytes.Buffer{}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
	compared := 0
	for _, a := range append(append(all.matrixRows(), all.smallRows()...), all.shareRow()) {
		if a.tolerance == 0 || math.IsNaN(a.ours) {
			continue
		}
		compared++
		if !a.agrees() {
			t.Errorf("%s: %.4g %s; want %.4g within %.2g", a.what, a.ours, a.unit, a.analytic, a.tolerance)
		}
	}
	if compared != 8 {
		t.Errorf("%d rows were compared; want 8", compared)
	}
	bad := acceptance{ours: 2, analytic: 2.2, low: 1, high: 3, tolerance: 0.1}
	if !strings.Contains(bad.verdict(), "fail") {
		t.Error("a value within its range and not within its tolerance passes")
	}
}

// TestGoodputAgreesWithMonteCarlo: a group with a member at each of several leaves, and losses on the way to the
// leaves; mean goodputs of seeds are those of the Monte-Carlo.
func TestGoodputAgreesWithMonteCarlo(t *testing.T) {
	const packets, seeds = 4000, 5
	path := analytic.Path{Rate: 200e9, Delay: topology.Microsecond, Links: 4, Payload: 4096, Header: headerBytes}
	for _, leaves := range []int{2, 16} {
		c := topology.LeafSpine(leaves+1, 1, 1)
		c.HostRate, c.FabricRate, c.HostDelay, c.FabricDelay = path.Rate, path.Rate, path.Delay, path.Delay
		hosts := workload.Contiguous(leaves + 1)
		goodput := func(loss float64) float64 {
			sum := 0.
			for seed := range uint64(seeds) {
				fabric, err := c.Build()
				if err != nil {
					t.Fatal(err)
				}
				for i := range fabric.Links { // of hosts and their leaves first, then from each leaf to the spine
					if l := &fabric.Links[i]; int(l.A) > fabric.Hosts {
						l.LossToA = loss
					}
				}
				program, err := workload.HPL{Algorithm: "group", Bytes: packets * 4096, Chunks: 1}.New([]workload.Communicator{{Ranks: hosts}})
				if err != nil {
					t.Fatal(err)
				}
				s, err := sim.New(sim.Config{Topology: fabric, Program: program, Seed: seed, Host: sim.Host{Personality: rc.Strict, Timeout: 50 * time.Microsecond}})
				if err != nil {
					t.Fatal(err)
				}
				parallel.Run(s, math.MaxInt64, func() bool { return true })
				sum += float64(s.Result().LastDelivered)
			}
			return seeds / sum
		}
		for _, loss := range []float64{1e-4, 1e-3} {
			m := analytic.MonteCarlo{Packets: packets, Copies: leaves, Loss: loss, Once: true, Window: int(path.Window()), Timeout: 299, Filter: analytic.Ideal, Seed: 1, Runs: 40}
			with, err := m.Goodput()
			if err != nil {
				t.Fatal(err)
			}
			m.Loss = 0
			without, err := m.Goodput()
			if err != nil {
				t.Fatal(err)
			}
			got, want := goodput(loss)/goodput(0), with/without
			t.Logf("%d leaves, loss %v: goodput %.3f, Monte-Carlo %.3f", leaves, loss, got, want)
			if math.Abs(got-want) > .03 {
				t.Errorf("%d leaves, loss %v: goodput %.3f; want %.3f within .03", leaves, loss, got, want)
			}
		}
	}
}
