// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestAlgorithmsTakeTheTimesOfTheirFormulas simulates each algorithm alone at one switch. limit is how much longer
// it may take than the formula. What is beyond that has a reason: two ranks that send to the same one, which a
// formula does not know.
func TestAlgorithmsTakeTheTimesOfTheirFormulas(t *testing.T) {
	const text = `sweep: {program: [hpl], algorithm: [group], n: [4]}
topology: {kind: leaf-spine, leaves: 1, hosts_per_leaf: 16, rate: 100gbit}
phases: [{programs: [{program: "${program}", algorithm: "${algorithm}", bytes: 1MB, ranks: "${n}"}]}]
`
	name := file(t, "algorithm.yaml", text)
	limits := map[string]float64{
		"hpl group": 0.001, "hpl 1ring": 0.002, "hpl 1ringM": 0.002, "hpl 2ring": 0.002, "hpl 2ringM": 0.002, "hpl long": 0.4, "hpl swap": 0.4, "hpl swap-central": 0.35, "hpl exchange": 0.01,
		"mpi linear": 0.002, "mpi chain": 0.002, "mpi pipeline": 0.002, "mpi binary": 0.002, "mpi binomial": 0.002, "mpi knomial": 0.002, "mpi scatter-allgather": 0.1, "mpi scatter-ring": 0.2, "mpi group": 0.001,
		"nccl ring": 0.01, "nccl group": 0.001,
	}
	for what, limit := range limits {
		kind, algorithm, _ := strings.Cut(what, " ")
		for _, n := range []string{"4", "16"} {
			out, errs, code := command(t.Context(), t, "run", name, "-o", "json", "--partitions", "1", "--set", "program="+kind, "--set", "algorithm="+algorithm, "--set", "n="+n)
			var r Result
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
				t.Fatalf("%s: %v, exit code %d: %s", what, err, code, errs)
			}
			if d := r.JCT/r.Analytic - 1; math.IsInf(d, 0) || d < -0.003 || d > limit {
				t.Errorf("%s, %s ranks: %.1f µs, analytic %.1f: %.4f more; want at most %v", what, n, r.JCT, r.Analytic, d, limit)
			}
		}
	}
}

// TestRendezvousTakesTheTimeOfFormulas: with MPI's rendezvous two ranks do not send to the same one at the same time,
// and spreads and rolls take the time of the formulas.
func TestRendezvousTakesTheTimeOfFormulas(t *testing.T) {
	const text = `sweep: {algorithm: [long], n: [4]}
topology: {kind: leaf-spine, leaves: 1, hosts_per_leaf: 16, rate: 100gbit}
phases: [{programs: [{program: hpl, algorithm: "${algorithm}", bytes: 16MB, ranks: "${n}", rendezvous: true}]}]
`
	name := file(t, "rendezvous.yaml", text)
	for _, algorithm := range []string{"1ring", "long", "swap", "swap-central", "exchange"} {
		for _, n := range []string{"4", "16"} {
			out, errs, code := command(t.Context(), t, "run", name, "-o", "json", "--partitions", "1", "--set", "algorithm="+algorithm, "--set", "n="+n)
			var r Result
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
				t.Fatalf("%s: %v, exit code %d: %s", algorithm, err, code, errs)
			}
			t.Logf("%s, %s ranks: %.1f µs, analytic %.1f", algorithm, n, r.JCT, r.Analytic)
			if d := r.JCT/r.Analytic - 1; math.IsInf(d, 0) || d < 0 || d > 0.04 {
				t.Errorf("%s, %s ranks: %.1f µs, analytic %.1f: %.4f more; want at most .04", algorithm, n, r.JCT, r.Analytic, d)
			}
		}
	}
}
