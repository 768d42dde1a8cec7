// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// labResults simulates a file under lab, with these values of its variables.
func labResults(t *testing.T, name string, set ...string) (all results) {
	t.Helper()
	file := filepath.Join("lab", name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := spec.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(set); i += 2 {
		if err := s.Set(set[i], set[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		r, err := runPoint(t.Context(), p, options{partitions: 1, stderr: &bytes.Buffer{}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestLossAsInTheLab compares goodputs with those that `gleam bench loss --receivers 16 --burst 0` has measured with
// a real switch: docs/PERFORMANCE.md, commit 5be475c, two runs of five rounds.
func TestLossAsInTheLab(t *testing.T) {
	// Without loss the sender's rate is the goodput, with repair and without.
	without := labResults(t, "loss.yaml", "repair", "0", "loss", "0", "seed", "1")[0].JCT
	for _, x := range []struct {
		repair, loss string
		lab          float64 // percent of the goodput without loss
	}{{"4MiB", "0.01", (99.6 + 99.8) / 2}, {"0", "0.001", (88.6 + 88.8) / 2}, {"0", "0.01", (45.0 + 41.5) / 2}} {
		sum := 0.
		const seeds = 2
		for _, seed := range []string{"1", "2"} {
			sum += labResults(t, "loss.yaml", "repair", x.repair, "loss", x.loss, "seed", seed)[0].JCT
		}
		got := 100 * without * seeds / sum
		t.Logf("repair %s, loss %s: goodput %.1f %%, in the lab %.1f %%", x.repair, x.loss, got, x.lab)
		if math.Abs(got-x.lab) > 3 {
			t.Errorf("repair %s, loss %s: goodput %.1f %%; the lab's is %.1f %%", x.repair, x.loss, got, x.lab)
		}
	}
}

// TestCongestionAsInTheLab compares the share of a slow port that a group with DCQCN gets with that of
// TestRateFollowsTheSlowestLeg of test/e2e: means of six seconds at 16 Mbit/s, of three at 8 (docs/SIMULATION.md).
func TestCongestionAsInTheLab(t *testing.T) {
	const bytes = 1000 * (32<<10 + 32*82 + 16) // bytes of 1000 WRITEs on the link
	for rate, x := range map[string]struct{ bits, lab float64 }{"16mbit": {16e6, 84}, "8mbit": {8e6, 94.2}} {
		for control, low := range map[string]float64{"dcqcn": 0, "none": 99} {
			r := labResults(t, "dcqcn.yaml", "rate", rate, "control", control)[0]
			p := &r.Phases[0]
			got := 100 * bytes * 8 / x.bits / (p.JCT / 1e6)
			t.Logf("%s, %s: %.1f %%, %d packets marked, %d dropped", rate, control, got, p.Marked, p.Dropped)
			if control == "dcqcn" && math.Abs(got-x.lab) > 3 || got < low || p.Marked == 0 || p.Dropped != 0 {
				t.Errorf("%s, %s: %.1f %% of the port, %d packets marked, %d dropped; the lab's share is %.1f %%", rate, control, got, p.Marked, p.Dropped, x.lab)
			}
		}
	}
}
