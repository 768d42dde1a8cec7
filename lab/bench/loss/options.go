// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

// Options are the parameters of a run. Lists have no duplicates.
type Options struct {
	options.Common
	Receivers []int     // receivers that lose packets; one more, the control receiver, loses none
	Unicast   []int     // those of Receivers that are measured with unicasts too
	Loss      []float64 // probability per packet and receiver; 0 is always measured
	Burst     []float64 // mean length of a burst of losses in packets; 0: independent losses
	Repair    []bool

	Size        int64 // bytes after which a measurement ends earlier; 0: never
	MessageSize int64
	Depth       int // messages posted and not complete
	// RepairTimeout is gleamd's repair.timeout. Here some programs share few cores, and
	// a program that waits some milliseconds for a CPU is no loss.
	RepairTimeout time.Duration
	Timeout       uint8   // the timeout of the queue pairs: they wait 4.096 µs * 2^Timeout before they send again
	Rate          float64 // the rate of the sender's link in Mbit/s of whole frames; 0: Load of the unpaced maximum
	Load          float64
	Seed          uint64
}

// Defaults take about 9 minutes, or with --quick half a minute.
func defaults() Options {
	return Options{
		Receivers: []int{3, 16, 64}, Unicast: []int{3}, Loss: []float64{0, 1e-4, 1e-3, 1e-2}, Burst: []float64{0, 8}, Repair: []bool{true, false},
		Common: options.Common{Rounds: 5, Duration: 1700 * time.Millisecond, MTU: 1024}, MessageSize: 8 << 10, Depth: 16, Timeout: 14, RepairTimeout: 16 * time.Millisecond, Load: 0.4, Seed: 1,
	}
}

// shared are the flags that other benchmarks have too.
var shared = []string{"rounds", "duration", "mtu", "fast-path"}

// quick are the flags that --quick sets, unless they are given.
var quick = map[string]string{
	"receivers": "3,16", "loss": "0,0.001,0.01", "burst": "0", "rounds": "3", "duration": "600ms",
}

// maxReceivers leaves a host for the sender and one for the control receiver.
const maxReceivers = lab.MaxHosts - 2

// maxDepth is how many messages may be posted: the receivers have several times
// that many receives, so that none is ever missing.
const maxDepth = 64

// recvDepth is how many receives a receiver has posted. The sender runs ahead of a
// receiving program by the messages that the device has acknowledged and the program
// has not polled yet.
const recvDepth = 4 * maxDepth

// check reports the first option that cannot be, and sorts the lists.
func (o *Options) check() error {
	slices.Sort(o.Receivers)
	slices.Sort(o.Unicast)
	slices.Sort(o.Loss)
	slices.Sort(o.Burst)
	switch {
	case len(o.Receivers) == 0 || o.Receivers[0] < 1 || o.Receivers[len(o.Receivers)-1] > maxReceivers:
		return fmt.Errorf("--receivers %v: want numbers from 1 to %d", o.Receivers, maxReceivers)
	case len(o.Loss) == 0 || !all(o.Loss, func(p float64) bool { return p >= 0 && p <= 0.3 }):
		return fmt.Errorf("--loss %v: want probabilities from 0 to 0.3", o.Loss)
	case len(o.Burst) == 0 || !all(o.Burst, func(b float64) bool { return b == 0 || b >= 1 && b <= soft.MaxLossBurst }):
		return fmt.Errorf("--burst %v: want mean lengths of 1 packet or more, or 0 for independent losses", o.Burst)
	case len(o.Repair) == 0 && len(o.Unicast) == 0:
		return errors.New("--repair and --unicast: nothing is left to measure")
	case options.Duplicates(o.Receivers) || options.Duplicates(o.Unicast) || options.Duplicates(o.Loss) || options.Duplicates(o.Burst) || len(o.Repair) > 2 || len(o.Repair) == 2 && o.Repair[0] == o.Repair[1]:
		return errors.New("--receivers, --unicast, --loss, --burst, --repair: a value is there twice")
	case o.MessageSize < headerLen || o.MessageSize > 1<<20 || o.MessageSize%4 != 0:
		return fmt.Errorf("--message-size %d: want %d bytes to 1MiB, a multiple of 4", o.MessageSize, headerLen)
	case o.Size < 0 || o.Size > 0 && o.Size < o.MessageSize:
		return fmt.Errorf("--size %d: want at least one message, %d bytes, or 0 to go by --duration alone", o.Size, o.MessageSize)
	case o.Depth < 1 || o.Depth > maxDepth:
		return fmt.Errorf("--depth %d: want 1 to %d messages", o.Depth, maxDepth)
	case o.RepairTimeout < 100*time.Microsecond || o.RepairTimeout > 10*time.Second:
		return fmt.Errorf("--repair-timeout %v: want 100us to 10s", o.RepairTimeout)
	case o.Timeout < 8 || o.Timeout > 20:
		return fmt.Errorf("--timeout %d: want 8 (1 ms) to 20 (4.3 s), the exponent of the queue pairs' timeout", o.Timeout)
	case o.Rate != 0 && !(o.Rate >= minRate && o.Rate <= 100_000): // false for NaN
		return fmt.Errorf("--rate %v: want %v to 100000 Mbit/s, or 0 to find one", o.Rate, minRate)
	case !(o.Load > 0 && o.Load <= 1):
		return fmt.Errorf("--load %v: want a share of the unpaced maximum, above 0 and at most 1", o.Load)
	}
	for _, n := range o.Unicast {
		if !slices.Contains(o.Receivers, n) {
			return fmt.Errorf("--unicast %d: it is not among the --receivers %v", n, o.Receivers)
		}
	}
	if o.Loss[0] != 0 { // the base of all comparisons
		o.Loss = slices.Insert(o.Loss, 0, 0)
	}
	return o.Common.Check(shared...)
}

// minRate in Mbit/s: below it, a message takes longer than a measurement.
const minRate = 0.1

func all(vs []float64, ok func(float64) bool) bool {
	return !slices.ContainsFunc(vs, func(v float64) bool { return math.IsNaN(v) || !ok(v) })
}

// Modes of a row.
const (
	Group   = "group"
	Unicast = "unicast"
)

// lossCase is the case of one row of the result.
type lossCase struct {
	receivers int
	mode      string
	repair    bool // true: the switch repairs losses; for mode Group
	loss      float64
	burst     float64 // 0 if loss is
}

// withoutLoss is the case that c is compared with.
func (c lossCase) withoutLoss() lossCase {
	c.loss, c.burst = 0, 0
	return c
}

func (c lossCase) String() string {
	s := fmt.Sprintf("%d receivers, %s", c.receivers, c.kind())
	if c.loss == 0 {
		return s + ", no loss"
	}
	s += fmt.Sprintf(", loss %g", c.loss)
	if c.burst > 0 {
		s += fmt.Sprintf(" in bursts of %g", c.burst)
	}
	return s
}

// kind is mode and repair in words.
func (c lossCase) kind() string {
	switch {
	case c.mode == Unicast:
		return Unicast
	case c.repair:
		return "group, repair on"
	}
	return "group, repair off"
}

// cases are all cases with that number of receivers, in the order of the result: the
// loss-free one of each kind first.
func (o *Options) cases(receivers int) (cs []lossCase) {
	kinds := make([]lossCase, 0, 3)
	for _, r := range o.Repair {
		kinds = append(kinds, lossCase{receivers: receivers, mode: Group, repair: r})
	}
	if o.hasUnicast(receivers) {
		kinds = append(kinds, lossCase{receivers: receivers, mode: Unicast})
	}
	for _, k := range kinds {
		cs = append(cs, k)
		for _, b := range o.Burst {
			for _, l := range o.Loss[1:] {
				k.loss, k.burst = l, b
				cs = append(cs, k)
			}
		}
	}
	return cs
}

// measurements is how many there are in all.
func (o *Options) measurements() int {
	n := 0
	for _, r := range o.Receivers {
		n += len(o.cases(r)) * o.Rounds
	}
	return n
}

// hasUnicast reports whether unicasts are measured with that number of receivers.
func (o *Options) hasUnicast(receivers int) bool { return slices.Contains(o.Unicast, receivers) }
