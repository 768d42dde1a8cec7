// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"
)

// TestEarlyAnswersAreFound: a switch whose file lacks a change that hosts have been told of breaks its
// promise to one that has joined, and waits for one that has left.
func TestEarlyAnswersAreFound(t *testing.T) {
	for _, f := range []struct{ scenario, what string }{
		{"restart-joins", "FALSE COMPLETION"},
		{"restart-leaves", "LIVELOCK"},
	} {
		t.Run(f.scenario, func(t *testing.T) {
			cfg := quickNamed(t, f.scenario)
			cfg.earlyAnswers = true
			r, err := Search(&cfg, Options{EndToEnd: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Violation == nil || !strings.Contains(r.Violation.What, f.what) {
				t.Fatalf("%d states, found %v, expected %q", r.States, r.Violation, f.what)
			}
			t.Logf("%d states, %v", r.States, r.Violation)
		})
	}
}

func quickNamed(t *testing.T, name string) Config {
	for _, c := range QuickRestarts() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no scenario %q", name)
	return Config{}
}
