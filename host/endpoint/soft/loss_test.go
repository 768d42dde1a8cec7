// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// run draws n times and returns which frames were lost.
func (m LossModel) run(n int) []bool {
	l := newLossProcess(m)
	lost := make([]bool, n)
	for i := range lost {
		lost[i] = l.drop()
	}
	return lost
}

// bursts counts lost frames, and the runs of frames lost in a row.
func bursts(lost []bool) (frames, runs int) {
	for i, l := range lost {
		if l {
			frames++
			if i == 0 || !lost[i-1] {
				runs++
			}
		}
	}
	return frames, runs
}

// TestLossModel checks loss rate and burst length. The tolerances are five standard
// deviations; the seeds are fixed.
func TestLossModel(t *testing.T) {
	const n = 4_000_000
	for _, m := range []LossModel{
		{Rate: 1e-4}, {Rate: 1e-3}, {Rate: 1e-2}, {Rate: 0.5},
		{Rate: 1e-4, Burst: 4}, {Rate: 1e-3, Burst: 8}, {Rate: 1e-2, Burst: 1}, {Rate: 1e-2, Burst: 20}, {Rate: 0.5, Burst: 2},
	} {
		t.Run(fmt.Sprintf("%g-%g", m.Rate, m.Burst), func(t *testing.T) {
			m.Seed = 7
			frames, runs := bursts(m.run(n))
			mean := m.Burst // of a run
			if mean == 0 {
				mean = 1 / (1 - m.Rate)
			}
			wantRuns := n * m.Rate / mean
			// Runs are nearly a Poisson process; a run's length is geometric, so that
			// the number of frames varies by a factor of about sqrt(2*mean-1) more.
			if got := float64(runs); math.Abs(got-wantRuns) > 5*math.Sqrt(wantRuns) {
				t.Errorf("%d bursts, want about %.0f", runs, wantRuns)
			}
			if got := float64(frames); math.Abs(got-n*m.Rate) > 5*math.Sqrt(n*m.Rate*(2*mean-1)) {
				t.Errorf("%d frames lost, want about %.0f", frames, n*m.Rate)
			}
			got := float64(frames) / float64(runs)
			if math.Abs(got-mean) > 5*mean/math.Sqrt(wantRuns) {
				t.Errorf("%.2f frames lost in a row, want about %.2f", got, mean)
			}
			if m.Burst == 1 && frames != runs {
				t.Error("two frames lost in a row")
			}
		})
	}
}

func TestLossModelIsSeeded(t *testing.T) {
	for _, burst := range []float64{0, 5} {
		m := LossModel{Rate: 0.01, Burst: burst, Seed: 1}
		a, again := m.run(10_000), m.run(10_000)
		m.Seed = 2
		if !slices.Equal(a, again) {
			t.Errorf("burst %v: the same seed loses other frames", burst)
		}
		if slices.Equal(a, m.run(10_000)) {
			t.Errorf("burst %v: another seed loses the same frames", burst)
		}
	}
}

func TestLossModelRefused(t *testing.T) {
	for want, m := range map[string]LossModel{
		"loss rate -0.1":                    {Rate: -0.1},
		"loss rate NaN":                     {Rate: math.NaN()},
		"loss rate 0.51":                    {Rate: 0.51},
		"mean burst of 0.5":                 {Rate: 0.1, Burst: 0.5},
		"mean burst of NaN":                 {Rate: 0.1, Burst: math.NaN()},
		"mean burst of +Inf lost frames: w": {Rate: 0.1, Burst: math.Inf(1)},
	} {
		if err := m.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
	for _, m := range []LossModel{{}, {Rate: MaxLossRate, Burst: 1}, {Rate: 1e-6, Burst: MaxLossBurst}} {
		if err := m.check(); err != nil {
			t.Error(err)
		}
		if l := newLossProcess(m); !(l.toBad >= 0 && l.toBad <= 1 && l.stayBad >= 0 && l.stayBad <= 1) {
			t.Errorf("%+v: probabilities %v and %v", m, l.toBad, l.stayBad)
		}
	}
}

func TestNoLossDrawsNothing(t *testing.T) {
	var l lossProcess
	if n := testing.AllocsPerRun(100, func() {
		if l.drop() {
			t.Error("lost a frame")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	l = newLossProcess(LossModel{Rate: 0.1, Burst: 3, Seed: 1})
	if n := testing.AllocsPerRun(100, func() { l.drop() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestInboundLoss checks that the receiver's frames, and not the sender's, are lost as
// the model says, and none after the model is removed.
func TestInboundLoss(t *testing.T) {
	const size = 2000 * 256
	p := newPair(t, pairConfig{pathMTU: 256, memory: size, qp: endpoint.QPConfig{Timeout: 10}})
	if err := p.dev[1].SetInboundLoss(LossModel{Rate: 2}); err == nil || !strings.Contains(err.Error(), "loss rate 2") {
		t.Errorf("%v", err)
	}
	m := LossModel{Rate: 0.02, Burst: 3, Seed: 5}
	if err := p.dev[1].SetInboundLoss(m); err != nil {
		t.Fatal(err)
	}
	before := p.dev[1].Stats().RxFrames
	p.transfer(t, []int{size})
	s := p.dev[1].Stats()
	want, _ := bursts(m.run(int(s.RxFrames - before)))
	if got := s.RxLoss; got == 0 || got != uint64(want) {
		t.Errorf("%d of %d frames lost, want %d", got, s.RxFrames-before, want)
	}
	if other := p.dev[0].Stats(); other.RxLoss+other.TxLoss+s.TxLoss != 0 {
		t.Errorf("lost elsewhere: %+v %+v", other, s)
	}
	if err := p.dev[1].SetInboundLoss(LossModel{}); err != nil {
		t.Fatal(err)
	}
	without := p.dev[1].Stats().RxLoss // some that the sender has sent again may have come since s
	p.transfer(t, []int{size})
	if now := p.dev[1].Stats().RxLoss; now != without {
		t.Errorf("%d frames lost without a model", now-without)
	}
}
