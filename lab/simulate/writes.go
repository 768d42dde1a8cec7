// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"slices"

	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// writes are those of a storage program, each with the flows that it consists of.
type writes struct {
	program  *workload.Writes
	underWay map[uint64]*openWrite
	times    times // the times of the writes that have ended
}

// openWrite has completed some of its flows.
type openWrite struct {
	start, end topology.Time
	left       int
}

func newWrites(w *workload.Writes) *writes {
	return &writes{program: w, underWay: make(map[uint64]*openWrite), times: newTimes()}
}

// add takes a completed flow. A write lasts from the start of its first flow to the completion of its last one.
func (w *writes) add(f flow) {
	number, flows := w.program.WriteOf(f.Flow)
	x := w.underWay[number]
	if x == nil {
		x = &openWrite{start: f.start, left: flows}
		w.underWay[number] = x
	}
	x.start, x.end = min(x.start, f.start), max(x.end, f.end)
	if x.left--; x.left == 0 {
		w.times.add(x.start, x.end)
		delete(w.underWay, number)
	}
}

// Writes are the figures of a storage program, of all its clients together: those of gleam perf replicate.
type Writes struct {
	Done int64   `json:"done"`
	IOPS float64 `json:"iops"`
	MBs  float64 `json:"mb_s"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p99_9_us"`
	Link float64 `json:"link_bytes_per_byte,omitempty"` // the bytes that the clients' hosts have sent, for a byte; 0: there are other programs
}

// result returns the figures; nil without a write that has ended.
func (w *writes) result(s *sim.Simulation, alone bool) *Writes {
	t := &w.times
	if t.flows == 0 {
		return nil
	}
	rate := float64(t.flows) / t.last.Seconds()
	out := &Writes{
		Done: t.flows, IOPS: rate, MBs: rate * float64(w.program.Bytes) / 1e6,
		P50: micro(t.quantile(0.5)), P99: micro(t.quantile(0.99)), P999: micro(t.quantile(0.999)),
	}
	if alone {
		hosts := w.program.Clients()
		slices.Sort(hosts)
		var sent uint64
		for _, h := range slices.Compact(hosts) {
			for _, p := range s.PortStats(h) {
				sent += p.Bytes
			}
		}
		out.Link = float64(sent) / float64(t.flows*w.program.Bytes)
	}
	return out
}

// text is a line for people.
func (w *Writes) text(out io.Writer) {
	link := ""
	if w.Link > 0 {
		link = fmt.Sprintf("; clients' links carry %.3f bytes for each", w.Link)
	}
	fmt.Fprintf(out, "      %d writes: %.0f IOPS, %.1f MB/s; p50 %.1f, p99 %.1f, p99.9 %.1f µs%s\n", w.Done, w.IOPS, w.MBs, w.P50, w.P99, w.P999, link)
}
