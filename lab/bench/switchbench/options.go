// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// measuredRow is one line of the result: a method, at one rhythm of ACKs.
type measuredRow struct {
	name     string // the name in the result
	what     string // a description for people
	method   *method
	ackEvery uint32
	window   uint32 // packets that the source sends before it waits for ACKs; 0: any number
}

// The rows' names.
const (
	bareRow      = "bare"
	gleamdRow    = "gleamd"
	gleamdAckRow = "gleamd-ack8"
	gleamdRow2   = "gleamd-w2"
	gleamdRow4   = "gleamd-w4"
	groups2Row   = "gleamd-g2"
	groups2w2Row = "gleamd-g2-w2"
	groups4w4Row = "gleamd-g4-w4"
	fastRow      = "gleamd-fast"
	fastAckRow   = "gleamd-fast-ack8"
	broadcastRow = "xdp-broadcast"
	programRow   = "xdp-program"
	noRepairRow  = "xdp-program-norepair"
	bridgeRow    = "bridge"
	mirredRow    = "tc-mirred"
	cloneRow     = "tc-clone"
	forwarderRow = "udp-forwarder"
)

// sparseAcks is the number of packets per ACK where feedback is not measured: receivers answer what the
// switch asks for (R112), and no more. frequentAcks is the number for a requester that sets AckReq now and then.
const (
	sparseAcks   = 128
	frequentAcks = 8
)

// fastWindow is the source's window where packets may be forwarded only as far as there
// are slots to retain them: a real source has one.
const fastWindow = 512

// allRows are measured in this order, again and again.
var allRows = []measuredRow{
	{bareRow, "bare AF_XDP loop", bareMethod, 0, 0},
	{gleamdRow, "gleamd", gleamdMethod, sparseAcks, 0},
	{gleamdAckRow, "gleamd, each receiver ACKs every 8th packet", gleamdMethod, frequentAcks, 0},
	{gleamdRow2, "gleamd, 2 workers share one group's ports", gleamd2Method, sparseAcks, 0},
	{gleamdRow4, "gleamd, 4 workers share one group's ports", gleamd4Method, sparseAcks, 0},
	{groups2Row, "gleamd, 2 groups of the same members", groups2Method, sparseAcks, 0},
	{groups2w2Row, "gleamd, 2 workers, 2 groups of the same members", groups2w2Method, sparseAcks, 0},
	{groups4w4Row, "gleamd, 4 workers, 4 groups of the same members", groups4w4Method, sparseAcks, 0},
	{fastRow, "gleamd, fast path in XDP, window of 512 packets", fastMethod, sparseAcks, fastWindow},
	{fastAckRow, "gleamd, fast path in XDP, each receiver ACKs every 8th packet", fastMethod, frequentAcks, fastWindow},
	{broadcastRow, "XDP broadcast, MACs rewritten", broadcastMethod, 0, 0},
	{programRow, "fast path's program alone, ring of 256 packets, nobody judges", programMethod, 0, 0},
	{noRepairRow, "fast path's program alone, without ring, nobody judges", noRepairMethod, 0, 0},
	{bridgeRow, "kernel bridge, multicast flood", bridgeMethod, 0, 0},
	{mirredRow, "tc mirred", mirredMethod, 0, 0},
	{cloneRow, "tc BPF, rewritten clones of a packet that is kept", cloneMethod, 0, 0},
	{forwarderRow, "UDP forwarder in Go, recvmmsg/sendmmsg", forwarderMethod, 0, 0},
}

// Bounds of the options.
const (
	minPayload = 64 // the least, so that a generator can make every frame
	maxPayload = 4096
	maxRounds  = 1000
)

// Options are the parameters of a run.
type Options struct {
	Rounds   int           // the result is their median
	Duration time.Duration // the time of each measurement
	Payloads []int         // bytes
	Legs     []int         // receivers
	Rows     []string      // names; empty: all
	Latency  bool          // measure it, where gleamd and the bridge are among the rows
}

// Default is the whole table.
func Default() Options {
	return Options{
		Rounds: 5, Duration: time.Second, Payloads: []int{64, 1024, 2048, 4096}, Legs: []int{1, 3, 7}, Latency: true,
	}
}

// Quick leaves only the case that the targets are about.
func (o *Options) Quick() { o.Payloads, o.Legs = []int{targetCase.payload}, []int{targetCase.legs} }

// overhead chooses what is not given of the case and the rounds in which the overhead of
// observations is measured.
func (o *Options) overhead(given func(flag string) bool) {
	if !given("payload") {
		o.Payloads = []int{targetCase.payload}
	}
	if !given("legs") {
		o.Legs = []int{targetCase.legs}
	}
	if !given("rounds") {
		o.Rounds = overheadRounds
	}
}

func (o *Options) check() error {
	switch {
	case o.Rounds < 1 || o.Rounds > maxRounds:
		return fmt.Errorf("--rounds %d: want 1 to %d", o.Rounds, maxRounds)
	case o.Duration < 10*time.Millisecond || o.Duration > time.Minute:
		return fmt.Errorf("--seconds %g: want 0.01 to 60", o.Duration.Seconds())
	case len(o.Payloads) == 0 || len(o.Legs) == 0:
		return fmt.Errorf("--payload and --legs: want one at least of each")
	}
	for _, p := range o.Payloads {
		if p < minPayload || p > maxPayload || p%4 != 0 {
			return fmt.Errorf("--payload %d: want %d to %d bytes, a multiple of 4", p, minPayload, maxPayload)
		}
	}
	for _, l := range o.Legs {
		if l < 1 || l > maxLegs-1 {
			return fmt.Errorf("--legs %d: want 1 to %d receivers", l, maxLegs-1)
		}
	}
	for _, r := range o.Rows {
		if !slices.ContainsFunc(allRows, func(a measuredRow) bool { return a.name == r }) {
			return fmt.Errorf("--rows %s: want some of %s", r, strings.Join(rowNames(), ", "))
		}
	}
	return nil
}

func rowNames() (names []string) {
	for _, r := range allRows {
		names = append(names, r.name)
	}
	return names
}

// rows are those that were chosen, in the usual order.
func (o *Options) rows() (rows []measuredRow) {
	for _, r := range allRows {
		if len(o.Rows) == 0 || slices.Contains(o.Rows, r.name) {
			rows = append(rows, r)
		}
	}
	return rows
}
