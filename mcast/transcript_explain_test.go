// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// TestExplanations compares explanations, word by word, with those of testdata/explain.
func TestExplanations(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "explain"), func(t *testing.T, file string) { runTranscriptFile(t, file) })
}

// explain prints the explanation of p.
func (s *transcript) explain(p *Packet, w *strings.Builder) {
	sw := s.sw.Group(0).Clone()
	if sw == nil {
		fmt.Fprintln(w, "no group")
		return
	}
	out := Output{MaxResends: s.out.MaxResends}
	e := sw.Group(0).Explain(s.now, p, &out)
	fmt.Fprintln(w, e.Verdict)
	printSteps(w, e.Steps)
}

// waits prints what the next acknowledgement waits for.
func (s *transcript) waits(w *strings.Builder) {
	x := s.sw.Group(0).Clone().Group(0).ExplainACK(s.now)
	printSteps(w, x.Steps)
	for i := range x.Waits {
		v := &x.Waits[i]
		fmt.Fprintf(w, "%s: %s, %d behind\n", s.legs[v.Leg], notation.PSN(v.PSN), v.Behind)
		printSteps(w, v.Why)
		for _, e := range v.Ends {
			if e.At != 0 {
				fmt.Fprintf(w, "  in %v", e.At-s.now)
			}
			printSteps(w, []Step{e.Step})
		}
	}
}

func printSteps(w *strings.Builder, steps []Step) {
	for _, s := range steps {
		fmt.Fprintf(w, "  %s: %s\n", strings.Join(s.Rules, " "), s.Text)
	}
}
