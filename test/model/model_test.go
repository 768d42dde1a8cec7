// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// maxStates bounds one scenario of the full search, and with it the memory.
const maxStates = 6_000_000

// TestModel searches the tiny scenarios; with GLEAM_MODEL=quick also larger ones, each second of them in CI,
// with GLEAM_MODEL=full (make model) the full ones. GLEAM_MODEL_ONLY is the name of the scenario to be searched;
// with GLEAM_MODEL_HOSTS the checks are those of the hosts alone.
func TestModel(t *testing.T) {
	configs, opt, full := Tiny(), Options{}, false
	switch bound := os.Getenv("GLEAM_MODEL"); bound {
	case "":
	case "quick":
		for i, c := range Quick() {
			if labtest.InTurn(t, i, 2) {
				configs = append(configs, c)
			}
		}
	case "full":
		configs, full = Full(), true
		opt.MaxStates = maxStates
	default:
		t.Fatalf("GLEAM_MODEL is %q: must be quick or full", bound)
	}
	opt.EndToEnd = os.Getenv("GLEAM_MODEL_HOSTS") != ""
	var sum Result
	for i := range configs {
		cfg := &configs[i]
		if only := os.Getenv("GLEAM_MODEL_ONLY"); only != "" && only != cfg.Name {
			continue
		}
		if raceEnabled && !smallForRace[cfg.Name] {
			continue
		}
		t.Logf("%s: %v", cfg.Name, cfg)
		r, err := Search(cfg, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(summary(r))
		sum.States += r.States
		sum.Transitions += r.Transitions
		sum.FairRuns += r.FairRuns
		sum.Elapsed += r.Elapsed
		if r.Violation != nil {
			t.Errorf("%s: %s", cfg.Name, r.Violation)
			continue
		}
		if !full && (!r.Complete || r.FairRuns != r.States && !cfg.EndlessRetries) {
			t.Errorf("%s: not searched to the end", cfg.Name)
		}
		if r.Finished == 0 {
			t.Errorf("%s: no state in which all is done", cfg.Name)
		}
	}
	t.Logf("in all: %d states, %d transitions, fair runs followed from %d states, %v, %.0f states/s",
		sum.States, sum.Transitions, sum.FairRuns, sum.Elapsed.Round(time.Second), float64(sum.States)/sum.Elapsed.Seconds())
}

// smallForRace are the tiny scenarios that are small enough for the race detector,
// which is some ten times slower; they run both workers like the others.
var smallForRace = map[string]bool{"death": true, "turns-rack": true, "turns-racks": true, "two-sources": true}

func summary(r Result) string {
	end := "all"
	if !r.Complete {
		end = "stopped there"
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("    %d states (%s), %d transitions, depth %d, %d finished, fair runs from %d, %v, %.0f states/s, waiting states %d MiB, process %d MiB",
		r.States, end, r.Transitions, r.Depth, r.Finished, r.FairRuns, r.Elapsed.Round(time.Millisecond), float64(r.States)/r.Elapsed.Seconds(), r.Bytes>>20, m.Sys>>20)
}
