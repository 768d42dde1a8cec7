// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// record takes the completions of a phase: what each program has, and the lines of the file
// of flows. Partitions have parts of their own.
type record struct {
	parts  []part
	writes []*writes // the writes by program; nil for one that is no storage
	flows  io.Writer // nil: no file
	phase  string
	err    error // the error of the file
}

type part struct {
	programs []times
	flows    []flow // the flows since the last call of write, for the file
	ofWrites []flow // likewise, of storage
	_        [64]byte
}

type flow struct {
	workload.Flow
	start, end topology.Time
}

// times are those of a program's flows, in buckets of 1/32 of a power of two.
type times struct {
	flows   int64
	last    topology.Time
	longest topology.Time
	buckets []int64
}

const fine = 5 // bits of a bucket below the highest

func newRecord(partitions int, ph *spec.Phase, flows io.Writer) *record {
	programs := len(ph.Programs)
	r := &record{parts: make([]part, partitions), writes: make([]*writes, programs), flows: flows, phase: ph.Name}
	for i := range ph.Programs {
		if w, ok := ph.Programs[i].Program.(*workload.Writes); ok {
			r.writes[i] = newWrites(w)
		}
	}
	for i := range r.parts {
		r.parts[i].programs = make([]times, programs)
		for j := range r.parts[i].programs {
			r.parts[i].programs[j] = newTimes()
		}
	}
	return r
}

// completed is sim.Config's Record.
func (r *record) completed(partition int, f workload.Flow, start, end sim.Time) {
	p := &r.parts[partition]
	p.programs[workload.ProgramOf(f.Key)].add(start, end)
	if r.flows != nil {
		p.flows = append(p.flows, flow{f, start, end})
	}
	if r.writes[workload.ProgramOf(f.Key)] != nil {
		p.ofWrites = append(p.ofWrites, flow{f, start, end})
	}
}

func newTimes() times { return times{buckets: make([]int64, (64-fine)<<fine)} }

func (t *times) add(start, end topology.Time) {
	t.flows++
	t.last = max(t.last, end)
	t.longest = max(t.longest, end-start)
	t.buckets[bucket(uint64(max(end-start, 0)))]++
}

func bucket(x uint64) int {
	if x < 1<<fine {
		return int(x)
	}
	shift := bits.Len64(x) - 1 - fine
	return (shift+1)<<fine + int(x>>shift)&(1<<fine-1)
}

// bottom is the lowest time of a bucket.
func bottom(i int) float64 {
	if i < 1<<fine {
		return float64(i)
	}
	return math.Ldexp(float64(1<<fine+i&(1<<fine-1)), i>>fine-1)
}

// quantile returns the time below which a share of the flows took, within 1/32.
func (t *times) quantile(share float64) topology.Time {
	rest := int64(math.Ceil(share * float64(t.flows)))
	for i, n := range t.buckets {
		if rest -= n; rest <= 0 && n > 0 {
			return min(topology.Time(bottom(i+1)), t.longest)
		}
	}
	return t.longest
}

// program returns the sum of a program over the partitions.
func (r *record) program(i int) times {
	sum := newTimes()
	for _, p := range r.parts {
		t := &p.programs[i]
		sum.flows += t.flows
		sum.last, sum.longest = max(sum.last, t.last), max(sum.longest, t.longest)
		for b, n := range t.buckets {
			sum.buckets[b] += n
		}
	}
	return sum
}

// flowColumns is the first line of the file of flows.
const flowColumns = "phase,program,key,source,to,group,bytes,start_us,end_us\n"

// write takes and writes the flows since the last call. No partition runs meanwhile.
func (r *record) write() {
	for i := range r.parts {
		p := &r.parts[i]
		for _, f := range p.ofWrites {
			r.writes[workload.ProgramOf(f.Key)].add(f)
		}
		p.ofWrites = p.ofWrites[:0]
	}
	if r.flows == nil {
		return
	}
	for i := range r.parts {
		p := &r.parts[i]
		for _, f := range p.flows {
			if _, err := fmt.Fprintf(r.flows, "%s,%d,%#x,%d,%d,%d,%d,%.6f,%.6f\n", r.phase, workload.ProgramOf(f.Key), f.Key, f.Source, f.To, f.Group, f.Bytes, micro(f.start), micro(f.end)); err != nil && r.err == nil {
				r.err = err
			}
		}
		p.flows = p.flows[:0]
	}
}

func micro(t topology.Time) float64 { return float64(t) / float64(topology.Microsecond) }
