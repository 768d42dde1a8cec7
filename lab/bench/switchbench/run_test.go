// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// All rows, one short round: every method delivers the right frames to every receiver
// (a wrong frame fails the run), and the result has all numbers.
func TestRun(t *testing.T) {
	labtest.Require(t)
	before, machine := openFiles(t), labtest.Watch()
	o := Default()
	o.Quick()
	o.Rounds, o.Duration = 1, 200*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // half a minute where nothing else runs
	defer cancel()
	r, err := Run(ctx, o, t.Logf)
	if errors.Is(err, errStarved) {
		machine.Timing(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(allRows) {
		t.Fatalf("%d rows, want %d", len(r.Rows), len(allRows))
	}
	var starved []string // rows whose copies were cut by the end of a round in which little was sent, and latencies of a few frames
	for i, x := range r.Rows {
		if x.Name != allRows[i].name || x.Reason != "" || x.InPPS <= 0 || x.CPU <= 0 {
			t.Errorf("row %d is not sound: %+v", i, x)
		}
		if x.OutPPS < 2.99*x.InPPS || x.OutPPS > 3.01*x.InPPS {
			starved = append(starved, fmt.Sprintf("row %s: %.0f copies of %.0f packets a second to 3 receivers", x.Name, x.OutPPS, x.InPPS))
		}
		if x.Loss < -0.2 || x.Loss > 1 || x.OfferedPS <= 0 {
			t.Errorf("row %s: loss %v, offered %v", x.Name, x.Loss, x.OfferedPS)
		}
	}
	if len(r.Latency) != 8 || len(r.Targets) != 17 {
		t.Errorf("latency %+v, targets %+v", r.Latency, r.Targets)
	}
	for _, l := range r.Latency {
		if l.P50 <= 0 || l.P99 < l.P50 || l.LastP50 < l.P50 || l.LastP99 < l.LastP50 {
			t.Errorf("latency is not sound: %+v", l)
		}
		if l.Samples < 10 {
			starved = append(starved, fmt.Sprintf("latency of few frames: %+v", l))
		}
	}
	var table strings.Builder
	if err := r.writeTable(&table); err != nil {
		t.Error(err)
	}
	t.Log(table.String())
	if after := openFiles(t); after > before+4 { // the runtime's own come and go
		t.Errorf("%d files open, were %d", after, before)
	}
	if len(starved) > 0 && !t.Failed() {
		machine.Timing(t, "%s", strings.Join(starved, "; "))
	}
}

// Frames that are longer than a kernel's buffer come from the other generator.
func TestRunJumbo(t *testing.T) {
	labtest.Require(t)
	o := Default()
	o.Payloads, o.Legs, o.Rows = []int{4096}, []int{2}, []string{bareRow, gleamdRow, broadcastRow, bridgeRow, mirredRow, forwarderRow}
	o.Rounds, o.Duration = 1, 100*time.Millisecond
	r, err := Run(t.Context(), o, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Rows {
		if x.Name == broadcastRow {
			if x.Reason == "" {
				t.Errorf("XDP broadcasts frames of several buffers now: %+v", x)
			}
			continue
		}
		if x.Name == gleamdRow && x.Reason != "" {
			t.Logf("gleamd does not take such frames: %s", x.Reason)
			continue
		}
		if x.Reason != "" || x.InPPS <= 0 || x.OutPPS < 1.99*x.InPPS || x.OutPPS > 2.01*x.InPPS {
			t.Errorf("row is not sound: %+v", x)
		}
	}
}

// A run that is interrupted ends soon, and leaves no state.
func TestRunEnds(t *testing.T) {
	labtest.Require(t)
	o := Default()
	o.Quick()
	o.Rows, o.Duration = []string{bareRow}, time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := Run(ctx, o, t.Logf); err == nil {
		t.Error("an interrupted run has a result")
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("ended after %v", d)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
