// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const writesStudy = `sweep: {algorithm: [group, unicast, chain]}
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4}
phases:
  - programs:
      - {program: storage, algorithm: "${algorithm}", bytes: 8KiB, clients: 1, replicas: 3, writes: 200, depth: 4}
`

// TestWrites: the latencies of writes are those that the file of flows gives, for any number of partitions; the client's link carries
// a write once to a group or a chain, and to each replica by unicasts.
func TestWrites(t *testing.T) {
	copies := map[string]float64{"group": 1, "unicast": 3, "chain": 1}
	flowsOf := map[string]int{"group": 1, "unicast": 3, "chain": 4}
	for algorithm := range copies {
		name := filepath.Join(t.TempDir(), "flows.csv")
		out, errs, code := command(t.Context(), t, "run", file(t, "writes.yaml", writesStudy), "-o", "json", "--no-progress", "--partitions", "3", "--flows", name, "--set", "algorithm="+algorithm)
		var r Result
		if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
			t.Fatalf("%s: exit code %d, %v: %s", algorithm, code, err, errs)
		}
		w := r.Phases[0].Programs[0].Writes
		if w == nil {
			t.Fatalf("%s: no figures of writes", algorithm)
		}
		var latencies []float64
		for _, x := range writesIn(t, name) {
			if x.flows != flowsOf[algorithm] {
				t.Errorf("%s: a write of %d flows, want %d", algorithm, x.flows, flowsOf[algorithm])
			}
			latencies = append(latencies, x.end-x.start)
		}
		slices.Sort(latencies)
		n := len(latencies)
		for _, q := range []struct{ share, got float64 }{{0.5, w.P50}, {0.99, w.P99}, {0.999, w.P999}} {
			if want := latencies[int(math.Ceil(q.share*float64(n)))-1]; math.Abs(q.got/want-1) > 1./32 {
				t.Errorf("%s: %v of writes take %.2f µs, by the flows %.2f", algorithm, q.share, q.got, want)
			}
		}
		rate := 200 / (r.Phases[0].Completed / 1e6)
		if w.Done != 200 || n != 200 || math.Abs(w.IOPS/rate-1) > 1e-6 || math.Abs(w.MBs-w.IOPS*8192/1e6) > 1e-6*w.MBs {
			t.Errorf("%s: %d writes, %d in the file, %.1f IOPS (%.1f), %.2f MB/s", algorithm, w.Done, n, w.IOPS, rate, w.MBs)
		}
		if c := copies[algorithm]; w.Link < c || w.Link > 1.1*c {
			t.Errorf("%s: the link carries %.3f bytes for each, want %v", algorithm, w.Link, c)
		}
		text, _, _ := command(t.Context(), t, "run", file(t, "writes.yaml", writesStudy), "--no-progress", "--set", "algorithm="+algorithm)
		if !strings.Contains(text, "200 writes: ") || !strings.Contains(text, " IOPS, ") {
			t.Errorf("%s", text)
		}
	}
}

type flowsOfWrite struct {
	start, end float64
	flows      int
}

// writesIn reads a file of flows of one client. The key ends with the write's number, which has the bits below the leg's.
func writesIn(t *testing.T, name string) map[uint64]*flowsOfWrite {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[uint64]*flowsOfWrite)
	for _, l := range lines[1:] {
		key, err := strconv.ParseUint(l[2], 0, 64)
		start, err1 := strconv.ParseFloat(l[7], 64)
		end, err2 := strconv.ParseFloat(l[8], 64)
		if err != nil || err1 != nil || err2 != nil {
			t.Fatalf("%v: %v, %v, %v", l, err, err1, err2)
		}
		x := all[key%1024]
		if x == nil {
			x = &flowsOfWrite{start: start}
			all[key%1024] = x
		}
		x.start, x.end = min(x.start, start), max(x.end, end)
		x.flows++
	}
	return all
}
