// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"io"
	"strings"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// Headings are perftest's (perftest_parameters.h: RESULT_FMT, RESULT_FMT_LAT), with one
// more column at the end, which names the row's receiver. Replicated writes have fio's figures.
const (
	bwHeading     = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]   at"
	bwRow         = " %-10d %-14d %-19.2f %-21.2f %-15.6f %s\n"
	latHeading    = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]   at"
	writesHeading = "   #bytes    #writes          IOPS        MB/s      p50[usec]      p99[usec]    p99.9[usec]   link bytes/byte"
	writesRow     = " %8d %10d %13.1f %11.2f %14.2f %14.2f %14.2f %17s\n"
	latRow        = " %-6d %-14d %-14.2f %-12.2f %-18.2f %-14.2f %-15.2f %-22.2f %-24.2f %s\n"
)

const rule = "---------------------------------------------------------------------------------------"

// titles are those of perftest's programs.
var titles = map[string]string{
	WriteBW: "RDMA_Write BW Test", WriteLat: "RDMA_Write Latency Test", SendBW: "Send BW Test", SendLat: "Send Latency Test",
	Replicate: "Replicated Write Test", Rotate: "RDMA_Write Test of each member in turn",
}

// table prints results as perftest does, each size as soon as it is measured.
type table struct {
	w   io.Writer
	err error // the first error of a write
}

func (t *table) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// begin prints the test's parameters, and the heading.
func (t *table) begin(o *SendOptions) {
	t.printf("%s\n                    %s\n", rule, titles[o.Test])
	how := o.Mode
	if o.Mode == Group {
		how = fmt.Sprintf("group %s", o.GroupIP)
	}
	t.printf(" Mode            : %s\n Receivers       : %d\n Backend         : %s\n Number of qps   : %d\n TX depth        : %d\n Mtu             : %d[B]\n",
		how, len(o.Receivers), o.Backend, o.Lanes, o.Depth, o.PathMTU)
	if o.replicates() {
		t.printf(" Slots           : %d\n", o.Slots)
	}
	if o.forwards() {
		t.printf(" Chunk           : %d[B]\n", o.Chunk)
	}
	if o.Congestion {
		t.printf(" Congestion      : DCQCN\n")
	}
	if o.Rate != linkrate.None {
		t.printf(" Rate            : %v at most\n", o.Rate)
	}
	if o.DeadAfter > 0 {
		t.printf(" Evicted after   : %v of silence\n", o.DeadAfter)
	}
	if o.Verify {
		t.printf(" Data            : verified, seed %d\n", o.Seed)
	}
	heading := bwHeading
	switch {
	case o.latency():
		heading = latHeading
	case o.replicates():
		heading = writesHeading
	}
	t.printf("%s\n%s\n", rule, heading)
}

// size prints the rows of one size: each receiver, the completion, and all; of replicated writes a row.
func (t *table) size(z *Size) {
	if w, l := z.All.Writes, z.All.Latency; w != nil && l != nil {
		link := "-"
		if moved := z.Bytes * z.Iterations; z.SenderLinkBytes > 0 && moved > 0 {
			link = fmt.Sprintf("%.3f", float64(z.SenderLinkBytes)/float64(moved))
		}
		t.printf(writesRow, z.Bytes, z.Iterations, w.IOPS, w.MBs, l.Typical, l.P99, l.P999, link)
		return
	}
	for _, r := range z.Turns {
		t.printf(bwRow, z.Bytes, r.Messages, r.Peak, r.Avg, r.Rate, r.Source)
	}
	for _, r := range z.Receivers {
		t.row(z, r.Figures, r.IP)
	}
	if z.Completion != nil {
		t.row(z, *z.Completion, "completion")
	}
	t.row(z, z.All, "all")
}

func (t *table) row(z *Size, f Figures, at string) {
	if b := f.Bandwidth; b != nil {
		t.printf(bwRow, z.Bytes, z.Iterations, b.Peak, b.Avg, b.Rate, at)
	}
	if l := f.Latency; l != nil {
		t.printf(latRow, z.Bytes, z.Iterations, l.Min, l.Max, l.Typical, l.Avg, l.Stdev, l.P99, l.P999, at)
	}
}

// end prints the bytes that the sender's link carried, if they are known.
func (t *table) end(r *Result) {
	t.printf("%s\n", rule)
	var link, payload, again, cnps uint64
	var final int64
	for _, z := range r.Sizes {
		again += z.Retransmitted
		cnps += z.CNPs
		final = z.Rate
		link += z.SenderLinkBytes
		payload += uint64(z.Bytes) * uint64(z.Iterations)
	}
	if link > 0 && payload > 0 {
		t.printf(" Sender's link   : %d bytes sent for %d of payload (%.3f)\n", link, payload, float64(link)/float64(payload))
	}
	if r.DeadAfter > 0 {
		for _, z := range r.Sizes {
			t.printf(" Longest pause   : %.1f ms, %d bytes; evicted so far: %v\n", z.Pause*1000, z.Bytes, z.Evicted)
		}
	}
	if again > 0 {
		t.printf(" Retransmitted   : %d packets of the sender\n", again)
	}
	if r.Congestion {
		t.printf(" CNPs            : %d\n Final rate      : %.1f Mbit/s\n", cnps, float64(final)/1e6)
	}
}

// backendNote names the backends that this program was built with.
func backendNote() string {
	if verbs.Built {
		return strings.Join(port.Backends, " or ")
	}
	return "soft (this program is built without verbs)"
}
