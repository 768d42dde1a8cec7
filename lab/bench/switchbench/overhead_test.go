// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// Each observation begins and ends in a gleamd that forwards, and has a ratio.
func TestRunOverhead(t *testing.T) {
	labtest.Require(t)
	o := Default()
	o.overhead(func(string) bool { return false })
	o.Rounds, o.Duration = 2, 100*time.Millisecond
	r, err := RunOverhead(t.Context(), o, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Observations) != len(observations) || r.CPU <= 0 || r.InPPS <= 0 || r.Payload != 1024 || r.Legs != 3 {
		t.Fatalf("%+v", r)
	}
	for i, x := range r.Observations {
		if c, n := x.CPU, x.InPPS; x.Name != observations[i].name || c.Low <= 0 || c.Median < c.Low || c.High < c.Median || n.Low <= 0 || n.Median < n.Low || n.High < n.Median {
			t.Errorf("observation %d: %+v", i, x)
		}
	}
	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil {
		t.Error(err)
	}
	t.Log(table.String())
}

// A ratio is that of a measurement to those before and behind it, so that a machine which becomes
// slower changes no ratio; where gleamd always has the observation, it is the other way round.
func TestOverheadRatios(t *testing.T) {
	cpu, in := between(load{cpu: 1000, in: 300}, load{cpu: 1210, in: 240}, load{cpu: 1200, in: 200})
	if cpu != 1.1 || in != 0.96 {
		t.Errorf("%v, %v", cpu, in)
	}
	if got := newRatio([]float64{1.02, 0.98, 1.0100049}); got != (Ratio{1.01, 0.98, 1.02}) {
		t.Errorf("%+v", got)
	}
}

// An observation costs too much, or little enough, if the whole interval says so.
func TestOverheadVerdicts(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      Verdict
	}{
		{0.98, 1.01, Within}, {0.98, 1.0101, Undecided}, {1.01, 1.02, Undecided}, {1.0101, 1.02, Beyond},
	} {
		x := Ratio{(c.low + c.high) / 2, c.low, c.high}
		if got := judgeOverhead(x, minIntervalRounds); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
		if got := judgeOverhead(x, minIntervalRounds-1); got != Undecided {
			t.Errorf("%v to %v in few rounds: %s", c.low, c.high, got)
		}
	}
}

// The table has each observation with its meaning, and says what its intervals are.
func TestOverheadTable(t *testing.T) {
	r := Overhead{Rounds: 40, Seconds: 1, Payload: 1024, Legs: 3, InPPS: 300_000, CPU: 3300, Others: 0.034, Warnings: []string{"busy"}, Observations: []Observation{
		{Name: "metrics", What: "metrics, scraped each second", CPU: Ratio{1.0012, 0.9987, 1.0031}, InPPS: Ratio{0.999, 0.99, 1.01}, Verdict: Within},
	}}
	for rounds, interval := range map[int]string{minIntervalRounds: "95 %", minIntervalRounds - 1: "lowest, highest"} {
		var b bytes.Buffer
		r.Rounds = rounds
		if err := r.writeTable(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"1024 B, 1 to 3", "WARNING: busy", "300.0 kpps", "3300 ns", "1.0012", "0.9987 to 1.0031", "at most 1 %", "metrics  metrics, scraped each second", interval, "took 3 %"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%d rounds: no %q in\n%s", rounds, want, &b)
			}
		}
	}
}
