// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/lab/bench/stat"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Latency is measured with one frame at a time, from before the write to the source's
// socket until the receivers' kernels have its copies, by their time stamps: the first copy,
// and the last one. On veths a write returns when all that its packet sets off on this CPU is
// done, the reception of all copies by XDP included, so the time at which a program could read
// the first copy says more about the benchmark than about the switch. One thread sends, and
// polls the receivers' sockets: no scheduling delay but the switch's is included.
const latencyLimit = 50 * time.Millisecond // the time after which a frame is lost

// latencyAckEvery is the number of frames per ACK of each receiver, where ACKs are read: few enough that the
// switch, which asks at each 32nd packet, has its answer before it probes (4 ms).
const latencyAckEvery = 8

// latencyGaps are the times from one frame to the next: in the first gleamd's
// worker goes to sleep (it spins for 50 µs) and has to be woken, in the second it
// does not.
var latencyGaps = []time.Duration{200 * time.Microsecond, 30 * time.Microsecond}

// latencyRows are the rows whose latency is compared; broadcastRow's is the kernel's part of
// fastRow's.
var latencyRows = []string{gleamdRow, fastRow, broadcastRow, bridgeRow}

// latencySamples are one row's.
type latencySamples struct {
	first      quantiles // the times until the first receiver has the frame
	last       quantiles // the times until all have it
	n, lost    int
	replicated uint64 // frames that XDP has replicated
}

// quantiles are of the times of each round, in µs.
type quantiles struct{ p50, p99 []float64 }

// add adds those of a round's times.
func (q *quantiles) add(times []float64) {
	if n := len(times); n > 0 {
		slices.Sort(times)
		q.p50, q.p99 = append(q.p50, times[n/2]), append(q.p99, times[n*99/100])
	}
}

// latency measures the latency of rows that stand, in turn.
func (b *switchBench) latency(ctx context.Context, measurements []*measurement) error {
	type series struct {
		*measurement
		gap time.Duration
		latencySamples
	}
	var all []*series
	for _, gap := range latencyGaps {
		for _, x := range measurements {
			if slices.Contains(latencyRows, x.row.name) && x.reason == "" {
				all = append(all, &series{measurement: x, gap: gap})
			}
		}
	}
	for round := range b.opts.Rounds {
		if len(all) > 0 {
			b.log("%s: latency, round %d of %d", targetCase, round+1, b.opts.Rounds)
		}
		for _, s := range all {
			before := s.n
			err := untilSeen(b.opts.Duration/2, s, func(d time.Duration) (bool, error) {
				err := onCPU(b.generator, func(<-chan struct{}) error {
					return s.measurement.testbed.latency(ctx, d, s.gap, &s.latencySamples)
				}).wait()
				return s.n > before, err
			})
			if err != nil {
				return err
			}
		}
	}
	for _, s := range all {
		c := s.measurement.testbed.benchCase
		b.result.Latency = append(b.result.Latency, Latency{
			Name: s.measurement.row.name, Payload: c.payload, Legs: c.legs, Gap: float64(s.gap.Microseconds()), Samples: s.n, Lost: s.lost,
			Fast: millionth(float64(s.replicated) / float64(max(s.n, 1))), P50: tenth(stat.Median(s.first.p50)), P99: tenth(stat.Median(s.first.p99)), LastP50: tenth(stat.Median(s.last.p50)), LastP99: tenth(stat.Median(s.last.p99)),
		})
	}
	return nil
}

// latency sends frames for d, one at a time and gap apart, and adds the measured times
// to l.
func (s *testbed) latency(ctx context.Context, d, gap time.Duration, l *latencySamples) (err error) {
	in, err := openSender(s.star.Hosts[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var out []*packetTap
	defer func() {
		for _, t := range out {
			err = errors.Join(err, t.Close())
		}
	}()
	for leg := 1; leg <= s.benchCase.legs; leg++ {
		t, err := openTap(s.star.Hosts[leg])
		if err != nil {
			return err
		}
		if out = append(out, t); !s.method.xdp {
			continue
		}
		if err := s.sinks.pass(leg, true); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.sinks.pass(leg, false)) }()
	}
	receivers, err := s.openReceivers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, receivers.close()) }()
	if s.fast != nil {
		before, err := s.fast()
		if err != nil {
			return err
		}
		defer func() {
			after, fastErr := s.fast()
			err = errors.Join(err, fastErr)
			l.replicated += after - before
		}()
	}
	psn, err := s.gen.next()
	if err != nil {
		return err
	}
	var first, last []float64
	sent := 0
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; psn = psn.Next() {
		frame, err := s.benchCase.dataFrame(s.dataPath(), psn)
		if err != nil {
			return err
		}
		start := time.Now()
		if err := in.send(frame); err != nil {
			return err
		}
		a, b, err := awaitAll(out, start)
		switch {
		case err != nil:
			return err
		case b.IsZero():
			l.lost++
		default:
			l.n++
			first, last = append(first, micros(a.Sub(start))), append(last, micros(b.Sub(start)))
		}
		if sent++; sent%latencyAckEvery == 0 {
			if err := receivers.acknowledge(); err != nil {
				return err
			}
			start = time.Now()
		}
		for start.Add(gap).After(time.Now()) { // no timer: it would fire too late
			runtime.Gosched()
		}
	}
	l.first.add(first)
	l.last.add(last)
	if _, err := s.gen.next(psn); err != nil {
		return err
	}
	return errors.Join(ctx.Err(), receivers.acknowledge())
}

// awaitAll returns when the first and the last receiver had the next data packet, zero times
// if one did not get it.
func awaitAll(taps []*packetTap, start time.Time) (first, last time.Time, err error) {
	var f rocev2.Frame
	for _, t := range taps {
		for {
			ok, err := t.next(&f)
			if err != nil {
				return first, last, err
			}
			if ok && !t.at.Before(start) { // else it is one that was given up
				break
			}
			if time.Since(start) > latencyLimit {
				return time.Time{}, time.Time{}, nil
			}
		}
		if first.IsZero() || t.at.Before(first) {
			first = t.at
		}
		if t.at.After(last) {
			last = t.at
		}
	}
	return first, last, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
