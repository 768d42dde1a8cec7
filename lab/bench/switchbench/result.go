// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"math"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// Result is the result of a run: the JSON output.
type Result struct {
	Machine Machine   `json:"machine"`
	Rounds  int       `json:"rounds"`
	Seconds float64   `json:"seconds"` // the time of each measurement
	Rows    []Row     `json:"rows"`
	Latency []Latency `json:"latency,omitempty"`
	Targets []Target  `json:"targets,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // reasons for which the ratios mean less
}

// Machine is the machine and the version that were measured.
type Machine struct {
	CPU    string `json:"cpu"` // model
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Commit string `json:"commit"`
}

// Row is one method in one case. All numbers are medians over the rounds; they are
// missing if there is a Reason.
type Row struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Payload int    `json:"payload"` // bytes
	Legs    int    `json:"legs"`    // receivers
	Reason  string `json:"reason,omitempty"`

	InPPS     float64 `json:"in_pps"`  // packets replicated a second
	OutPPS    float64 `json:"out_pps"` // packets that arrived, at all receivers together
	OfferedPS float64 `json:"offered_pps"`

	// CPU time in ns per packet out: of the method's own threads (with the receivers'
	// share that the kernel runs in them), and of the kernel on the sender's side.
	CPU     float64 `json:"cpu_ns_per_out"`
	Threads float64 `json:"thread_ns_per_out"`
	Softirq float64 `json:"softirq_ns_per_out"`

	// At 0.9 times the row's in_pps of the same round: the share of the packets that the
	// receiver with the fewest packets lacks; and copies that came once more, as a share
	// of all.
	Loss     float64 `json:"loss"`
	Repeated float64 `json:"repeated"`

	// The share of the packets that XDP has replicated, of a method with a fast path.
	Fast float64 `json:"fast,omitempty"`

	// In most rounds the row took all that could be offered: it may be able to do more.
	Unsaturated bool `json:"unsaturated,omitempty"`

	In []float64 `json:"in_pps_rounds"` // InPPS of each round
}

// Latency is the time of a frame from the source's socket to the receivers' kernels, one
// frame after the other.
type Latency struct {
	Name    string  `json:"name"`
	Payload int     `json:"payload"`
	Legs    int     `json:"legs"`
	Gap     float64 `json:"gap_us"` // the time from one frame to the next
	Samples int     `json:"samples"`
	Lost    int     `json:"lost"`
	Fast    float64 `json:"fast,omitempty"` // the value as in Row
	P50     float64 `json:"p50_us"`         // medians over the rounds, until the first receiver has it
	P99     float64 `json:"p99_us"`
	LastP50 float64 `json:"last_p50_us"` // the times until all have it
	LastP99 float64 `json:"last_p99_us"`
}

func newResult(o *Options) *Result {
	r := &Result{Rounds: o.Rounds, Seconds: o.Duration.Seconds()}
	build := api.Build(time.Now())
	m := machine.Here(build.Text())
	r.Machine = Machine{CPU: m.CPU, CPUs: m.Cores, Kernel: m.Kernel, Go: m.Go, Commit: m.Version}
	return r
}

func (x *measurement) result(c benchCase) Row {
	r := Row{Name: x.row.name, What: x.row.what, Payload: c.payload, Legs: c.legs, Reason: x.reason}
	if x.reason != "" {
		return r
	}
	// Tenths of a packet, of a ns, and millionths are beyond the measurement's
	// precision.
	r.InPPS, r.OutPPS, r.OfferedPS = math.Round(stat.Median(x.in)), math.Round(stat.Median(x.out)), math.Round(stat.Median(x.offered))
	r.Threads, r.Softirq = math.Round(stat.Median(x.threadNS)), math.Round(stat.Median(x.softirqNS))
	total := make([]float64, len(x.threadNS))
	for i := range total {
		total[i] = x.threadNS[i] + x.softirqNS[i]
	}
	r.CPU, r.Loss, r.Repeated = math.Round(stat.Median(total)), millionth(stat.Median(x.loss)), millionth(stat.Median(x.repeated))
	r.Fast = millionth(stat.Median(x.fast))
	r.Unsaturated = 2*x.unsaturated > len(x.in)
	for _, v := range x.in {
		r.In = append(r.In, math.Round(v))
	}
	return r
}

func millionth(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// find returns the row of a name in a case, nil if it was not measured.
func (r *Result) find(name string, c benchCase) *Row {
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Name == name && (benchCase{x.Payload, x.Legs}) == c && x.Reason == "" {
			return x
		}
	}
	return nil
}
