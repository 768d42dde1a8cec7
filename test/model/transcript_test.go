// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// TestTranscriptsAreThoseOfMcast: what the model writes down of a run can be
// dropped into mcast/testdata. These files were; package mcast runs them
// against the switch. GLEAM_REWRITE=1 writes them anew.
func TestTranscriptsAreThoseOfMcast(t *testing.T) {
	rnr := Config{Name: "rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: allRXE, Bounds: Bounds{Lose: 1, Delay: 1}, Withheld: 1}
	write := Config{Name: "write", Receivers: 2, SendWindow: 4, Messages: []int{3, 1}, Write: true, Hosts: mixed, Bounds: Bounds{Lose: 2, Duplicate: 1}}
	turns := Config{Name: "turns", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Hosts: alike, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 1}}
	repair := Config{Name: "repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 3}, Write: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 2, Delay: 1}}
	full := Config{Name: "repair_full", Receivers: 2, SendWindow: 4, Messages: []int{3, 1}, Repair: 1, PortRoom: 1, Hosts: crossed, Bounds: Bounds{Lose: 2}}
	pause := Config{Name: "repair_rnr", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Bounds: Bounds{Lose: 1}, Withheld: 1}
	rejoin := Config{Name: "rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 2}, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Lose: 1}}
	quorum := Config{Name: "quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, HostsMayDie: true, Hosts: crossed, Bounds: Bounds{Lose: 1}}
	fatal := Config{Name: "fatal", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, ShortBuffer: 2, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}}
	for _, c := range []struct {
		cfg  *Config
		seed uint64
		sw   int
	}{{&rnr, 1, 0}, {&write, 2, 0}, {&turns, 4, 0}, {&turns, 4, 2}, {&repair, 5, 0}, {&full, 4, 0}, {&pause, 1, 1}, {&rejoin, 3, 0}, {&quorum, 2, 0}, {&fatal, 1, 0}} {
		t.Run(fmt.Sprintf("%s/%d", c.cfg.Name, c.sw), func(t *testing.T) {
			got := wander(t, c.cfg, c.seed).text[c.sw].String()
			file := filepath.Join("../..", "mcast", "testdata", fmt.Sprintf("Model_%s_%d", c.cfg.Name, c.sw))
			if os.Getenv("GLEAM_REWRITE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is not what the model writes now; compare, and write it anew with GLEAM_REWRITE=1. Now:\n%s", file, got)
			}
		})
	}
}

// wander takes random steps and finishes by a fair run.
func wander(t *testing.T, cfg *Config, seed uint64) *recorder {
	t.Helper()
	w, err := NewWorld(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.recorder = newRecorder(w)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 25 {
		if as := w.actions(nil); len(as) > 0 {
			w.do(as[rng.IntN(len(as))])
		}
	}
	for !w.finished() {
		a, ok := w.fair(0)
		if !ok || w.wrong != nil {
			t.Fatalf("%s: %v", cfg.Name, w.wrong)
		}
		w.do(a)
	}
	return w.recorder
}
