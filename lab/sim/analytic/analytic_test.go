// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package analytic

import (
	"math"
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// paper is the longest path of the paper's fabric.
var paper = Path{Rate: 200e9, Delay: topology.Microsecond, Links: 6, Payload: 4096, Header: 82}

func milliseconds(t topology.Time) float64 { return t.Seconds() * 1e3 }

// near fails unless a value is within a part of the wanted one.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want) {
		t.Errorf("%s: %.4g, want %.4g", what, got, want)
	}
}

// TestGroup holds the volume of 63.5 MB for both phases to the paper's 5.17 ms.
func TestGroup(t *testing.T) {
	near(t, "panel broadcast and row swap, ms", milliseconds(2*Group(paper, 63_500_000)), 5.19, 0.002)
	near(t, "latency, µs", paper.Latency().Seconds()*1e6, 7, 0.005)
}

// TestRebuild: four times over two links between switches, with one packet for 183 members.
func TestRebuild(t *testing.T) {
	p := Path{Rate: 200e9, Delay: topology.Microsecond, Links: 4}
	for members, packets := range map[int]topology.Time{2: 1, 183: 1, 184: 2} {
		if got, want := Rebuild(p, members), 8*(topology.Microsecond+packets*1538*40); got != want {
			t.Errorf("%d members: %d ps; want %d", members, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	for links, want := range map[int][2]float64{6: {13.0, 78}, 4: {8.7, 52}, 2: {4.33, 26}} {
		p := paper
		p.Links = links
		near(t, "round trip, µs", p.RTT().Seconds()*1e6, want[0], 0.01)
		near(t, "window", p.Window(), want[1], 0.01)
	}
}

// TestBaselines are the formulas' values for 64 MB and 6 µs for each message.
func TestBaselines(t *testing.T) {
	const a = 6 * topology.Microsecond
	for _, tt := range []struct {
		n                        int
		ring, long, of64, whole3 float64
	}{{8, 4.61, 4.63, 7.53, 12.5}, {16, 4.99, 5.01, 8.28, 12.8}, {32, 5.25, 5.28, 9.30, 13.1}, {64, 5.52, 5.55, 11.1, 13.4}, {128, 5.94, 5.99, 14.5, 13.8}} {
		ring, long := Ring(paper, 64e6, tt.n, tt.n, topology.Time(tt.n-1)*a), Long(paper, 64e6, tt.n, a)
		near(t, "ring, ms", milliseconds(ring), tt.ring, 0.002)
		near(t, "long, ms", milliseconds(long), tt.long, 0.002)
		near(t, "ring of 64 chunks and long, ms", milliseconds(Ring(paper, 64e6, tt.n, 64, topology.Time(tt.n-1)*a)+long), tt.of64, 0.006)
		near(t, "ring and long of three, ms", milliseconds(ring)+3*milliseconds(paper.Transfer(64e6)), tt.whole3, 0.01)
	}
	near(t, "ring without chunks, ms", milliseconds(Ring(paper, 63_500_000, 8, 1, 7*a)), 18.2, 0.01)
	near(t, "ring without chunks, ms", milliseconds(Ring(paper, 63_500_000, 128, 1, 127*a)), 330, 0.01)
}

// TestGoBackN are the values of the formula by copies and window.
func TestGoBackN(t *testing.T) {
	for _, tt := range []struct {
		copies, window int
		loss, want     float64
	}{
		{1, 80, 1e-4, .992}, {1, 80, 1e-3, .926}, {2, 80, 1e-3, .862}, {2, 80, 1e-4, .984}, {16, 20, 1e-3, .756}, {16, 40, 1e-3, .608},
		{16, 80, 1e-4, .886}, {16, 80, 1e-3, .437}, {64, 2, 1e-3, .883}, {64, 80, 1e-3, .159}, {512, 2, 1e-3, .428}, {512, 80, 1e-4, .192}, {512, 80, 1e-3, .018},
	} {
		if got := goBackN(tt.loss, tt.copies, float64(tt.window)); math.Abs(got-tt.want) > .0015 {
			t.Errorf("%d copies, window %d, loss %v: %.4f, want %.3f", tt.copies, tt.window, tt.loss, got, tt.want)
		}
	}
}

// TestMonteCarlo are the goodputs of an earlier program by the same rules, for 64 MB.
func TestMonteCarlo(t *testing.T) {
	for _, tt := range []struct {
		copies, window int
		loss           float64
		ideal, literal float64
	}{
		{1, 80, 1e-4, .986, 0}, {1, 80, 1e-3, .920, 0}, {2, 80, 1e-4, .978, .978}, {2, 80, 1e-3, .864, .855},
		{16, 20, 1e-3, .794, .760}, {16, 40, 1e-3, .705, .642}, {16, 80, 1e-4, .886, .889}, {16, 80, 1e-3, .618, .531},
		{64, 2, 1e-3, .855, .853},
	} {
		for filter, want := range map[Filter]float64{Ideal: tt.ideal, Literal: tt.literal} {
			if want == 0 {
				continue
			}
			got, err := MonteCarlo{Packets: 15625, Copies: tt.copies, Loss: tt.loss, Window: tt.window, Timeout: 1496, Filter: filter, Seed: 1, Runs: 3}.Goodput()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d copies, window %d, loss %v, filter %d: %.3f, want %.3f", tt.copies, tt.window, tt.loss, filter, got, want)
			if math.Abs(got-want) > .03 {
				t.Errorf("%d copies, window %d, loss %v, filter %d: %.3f, want %.3f", tt.copies, tt.window, tt.loss, filter, got, want)
			}
		}
	}
	if _, err := (MonteCarlo{}).Goodput(); err == nil {
		t.Error("a Monte-Carlo of nothing has no error")
	}
}

// anyLost returns the probability that at least one of the copies of a packet is lost.
func anyLost(loss float64, copies int) float64 {
	return -math.Expm1(float64(copies) * math.Log1p(-loss))
}

// goBackN returns the goodput of go-back-N, as a part of that without loss: each loss of any of
// the copies costs a window.
func goBackN(loss float64, copies int, window float64) float64 {
	q := anyLost(loss, copies)
	return (1 - q) / (1 - q + q*window)
}
