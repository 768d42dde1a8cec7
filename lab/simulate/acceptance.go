// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math"
	"strconv"

	"github.com/gleam-rdma/gleam/lab/sim/analytic"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// row of the table: a result of the paper, the same by simulation and by formula, and the range in which
// it agrees.
type acceptance struct {
	what      string
	paper     string
	ours      float64 // the result of this simulation; not a number if a point of it was not simulated
	analytic  float64 // 0: none
	low, high float64 // the range of ours
	unit      string

	// tolerance is the greatest difference of ours from analytic; 0: that is no test.
	tolerance float64
}

func (a *acceptance) verdict() string {
	switch {
	case math.IsNaN(a.ours):
		return "not run"
	case a.agrees() && a.ours >= a.low && a.ours <= a.high:
		return "pass"
	}
	return "**fail**"
}

// agrees reports whether the simulated value is that of the formula, within the tolerance.
func (a *acceptance) agrees() bool {
	return a.tolerance == 0 || math.Abs(a.ours-a.analytic) <= a.tolerance
}

// results are those of the paper's files, by study.
type results []*Result

// jct returns the mean JCT of a study's points with these values of variables, in ms; not a number if there are none.
func (all results) jct(study string, vars ...string) float64 {
	return all.mean(func(r *Result) float64 { return r.JCT / 1e3 }, study, vars...)
}

func (r *Result) analyticMs() float64 { return r.Analytic / 1e3 }

// mean is jct for another value of the points.
func (all results) mean(of func(*Result) float64, study string, vars ...string) float64 {
	sum, n := 0.0, 0
	for _, r := range all {
		ok := r.Study == study
		for i := 0; i < len(vars); i += 2 {
			ok = ok && r.Vars[vars[i]] == vars[i+1]
		}
		if ok {
			sum, n = sum+of(r), n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// volume is what each rank gets in a phase of the matrix.
const volume = 63_500_000

// paperPath is the longest path of the paper's fabric.
var paperPath = analytic.Path{Rate: 200e9, Delay: topology.Microsecond, Links: 6, Payload: 4096, Header: headerBytes}

// table returns all rows.
func (all results) table() ([]acceptance, error) {
	rows := all.matrixRows()
	flows, err := matrixFlows(128)
	if err != nil {
		return nil, err
	}
	rows = append(rows, acceptance{"flows of 128x128", "more than 4 M", float64(flows), 4_177_792, 4_177_792, 4_177_792, "", 0})
	losses, err := all.lossRows()
	if err != nil {
		return nil, err
	}
	rows = append(append(rows, losses...), all.smallRows()...)
	return append(append(append(rows, all.failureRows()...), all.groupsRows()...), all.shareRow()), nil
}

// matrixRows are the JCT by scale.
func (all results) matrixRows() (rows []acceptance) {
	reduction := func(n string) float64 {
		return 100 * (1 - all.jct("matrix-group", "n", n)/all.jct("matrix-unicast", "n", n))
	}
	sizes := []string{"8", "16", "32", "64", "128"}
	shortest, longest, leastGrowth := math.Inf(1), 0., math.Inf(1)
	for i, n := range sizes {
		shortest, longest = min(shortest, all.jct("matrix-group", "n", n)), max(longest, all.jct("matrix-group", "n", n))
		if i > 0 {
			leastGrowth = min(leastGrowth, reduction(n)-reduction(sizes[i-1]))
		}
		formula := all.mean((*Result).analyticMs, "matrix-group", "n", n)
		rows = append(rows, acceptance{"Gleam, JCT of " + n + "x" + n, "5.17", all.jct("matrix-group", "n", n), formula, 5.17 * 0.98, 5.17 * 1.02, "ms", formula / 200})
	}
	rows = append(rows,
		acceptance{"Gleam, spread of JCT from 8x8 to 128x128", "flat", 100 * (longest/shortest - 1), 0, 0, 1, "%", 0},
		acceptance{"ring and long, JCT of 8x8", "13.7", all.jct("matrix-unicast", "n", "8"), 0, 13.7 * 0.8, 13.7 * 1.2, "ms", 0},
		acceptance{"ring and long, JCT of 128x128", "19.4", all.jct("matrix-unicast", "n", "128"), 0, 19.4 * 0.8, 19.4 * 1.2, "ms", 0},
		acceptance{"reduction, 8x8", "62", reduction("8"), 0, 55, 66, "%", 0},
		acceptance{"reduction, 128x128", "73", reduction("128"), 0, 68, 78, "%", 0},
		acceptance{"reduction, least growth from one matrix to the next", "grows", leastGrowth, 0, 0, 100, "points", 0},
	)
	for _, n := range []string{"32", "128"} {
		gain := all.jct("trees", "trees", "hashed", "n", n) / all.jct("trees", "trees", "least-used", "n", n)
		low := 3.
		if n != "128" {
			low = 1 // fewer groups collide less
		}
		rows = append(rows, acceptance{"row swap of " + n + "x" + n + ", hashed trees over least used ones", "-", gain, 0, low, 100, "times", 0})
	}
	return rows
}

func ms(t topology.Time) float64 { return t.Seconds() * 1e3 }

// matrixFlows counts the messages of a matrix by unicasts.
func matrixFlows(n int) (int64, error) {
	hosts := workload.Contiguous(n * n)
	rows, err := workload.Rows(hosts, n)
	if err != nil {
		return 0, err
	}
	columns, err := workload.Columns(hosts, n)
	if err != nil {
		return 0, err
	}
	ring, err := workload.HPL{Algorithm: "1ring", Bytes: volume, Chunks: n}.New(rows)
	if err != nil {
		return 0, err
	}
	long, err := workload.HPL{Algorithm: "long", Bytes: volume, Chunks: 1}.New(columns)
	if err != nil {
		return 0, err
	}
	return ring.Flows() + long.Flows(), nil
}

// lossRows are goodputs, as parts of that without loss. The Monte-Carlo has a filter that drops
// NAKs for what is on its way again, as the switch does, and the responders' rule of one NAK. A NAK passes a link to a
// core and one from there, as data does.
func (all results) lossRows() (rows []acceptance, err error) {
	const noRepair, repair = "0", "4MiB"
	goodput := func(size, loss, repair string) float64 {
		return all.jct("loss", "size", size, "repair", repair, "loss", "0") / all.jct("loss", "size", size, "repair", repair, "loss", loss)
	}
	for _, x := range []struct {
		size, loss, paper string
		low, high         float64
		tolerance         float64
	}{{"512", "0.00001", "~1", .97, 1, .01}, {"512", "0.0001", ">= .90", .87, .97, .02}, {"512", "0.001", ".42", .55, .75, .03}, {"64", "0.001", ".889", .83, .93, .02}} {
		p, _ := strconv.ParseFloat(x.loss, 64)
		m := analytic.MonteCarlo{Packets: (volume + 4095) / 4096, Copies: 16, Loss: p, LostNAK: 2 * p, Once: true, Window: int(paperPath.Window()), Timeout: 1496, Filter: analytic.Ideal, Seed: 1, Runs: 20}
		if x.size == "64" {
			m.Copies = 2
		}
		by, err := m.Goodput()
		if err != nil {
			return nil, err
		}
		m.Loss, m.LostNAK = 0, 0
		without, err := m.Goodput()
		if err != nil {
			return nil, err
		}
		rows = append(rows, acceptance{"goodput, group of " + x.size + ", loss " + x.loss, x.paper, goodput(x.size, x.loss, noRepair), by / without, x.low, x.high, "", x.tolerance})
		if x.loss != "0.00001" {
			low := .95
			if x.loss == "0.0001" {
				low = .995
			}
			rows = append(rows, acceptance{"the same with repair by the switches", "-", goodput(x.size, x.loss, repair), 0, low, 1.001, "", 0})
		}
	}
	return rows, nil
}

// shareRow is the goodput of each of two groups that share a link, with DCQCN.
func (all results) shareRow() acceptance {
	alone := all.jct("share", "communicators", "1", "control", "none")
	return acceptance{"two groups that share a link, DCQCN: of half the link", "-", 100 * 2 * alone / all.jct("share", "communicators", "2", "control", "dcqcn"), 100, 90, 101, "%", 10}
}

// smallRows are those of the testbed. The rank at which all pivots are is the root of one swap of four, which
// takes the time of a uniform one then; so the mean of the central ones is 2.25 transfers, and 1.5 are the uniform ones'.
func (all results) smallRows() []acceptance {
	mpi := func(bytes string) float64 {
		return all.jct("mpi", "algorithm", "tuned", "bytes", bytes) / all.jct("mpi", "algorithm", "group", "bytes", bytes)
	}
	less := func(study, by string, vars ...string) float64 {
		of := func(a string) float64 { return all.jct(study, append([]string{"algorithm", a}, vars...)...) }
		return 100 * (1 - of("group")/of(by))
	}
	group, uniform := all.jct("testbed", "algorithm", "group"), all.jct("testbed", "algorithm", "swap")
	central := (3*all.jct("testbed", "algorithm", "swap-central") + uniform) / 4
	return []acceptance{
		{"MPI_Bcast 1 to 3, 64 KB: times faster", "1.6", mpi("65536"), 1.53, 1.45, 1.75, "times", .03},
		{"MPI_Bcast 1 to 3, 512 KB (linear): JCT less", "~50", 100 * (1 - 1/mpi("524288")), 0, 45, 67, "%", 0},
		{"MPI_Bcast 1 to 3, 1 GB (chain), at line rate", "2 (below line rate)", mpi("1000000000"), 3, 2.9, 3.01, "times", .03},
		{"writes of 8 KB, 3 unicasts over Gleam", "35", 100 * all.jct("storage", "algorithm", "group") / all.jct("storage", "algorithm", "unicast"), 33.3, 33, 36, "%", .7},
		{"latency of 64 KB: less than 3 unicasts'", "40", less("latency", "unicast", "bytes", "65536"), 0, 35, 45, "%", 0},
		{"latency of 512 KB: less than 3 unicasts'", "60", less("latency", "unicast", "bytes", "524288"), 0, 55, 65, "%", 0},
		{"HPL panel broadcast, 4 hosts: less than the ring's", "67", less("testbed", "1ring"), 66.7, 64, 70, "%", .1},
		{"HPL row swap, 4 hosts, uniform: less than long's", "18", less("testbed", "long"), 33.3, 15, 35, "%", 1},
		{"HPL row swap, 4 hosts, central: less than HPL's", "46", 100 * (1 - group/central), 55.6, 40, 60, "%", .5},
		{"HPL row swap, 4 hosts: central over uniform", "1.52", central / uniform, 1.5, 1.52 * 0.8, 1.52 * 1.2, "times", .02},
	}
}
