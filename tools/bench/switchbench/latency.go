// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Latency is measured with one frame at a time, from before the write to the source's
// socket until a receiver's socket has the frame, by one thread that polls the latter
// all the time: so no scheduling delay but the switch's is included.
const latencyLimit = 50 * time.Millisecond // after which a frame is lost

// latencyAckEvery is the number of frames per ACK of each receiver, where ACKs are read.
const latencyAckEvery = 128

// latencyGaps are the times from one frame to the next: in the first gleamd's
// worker goes to sleep (it spins for 50 µs) and has to be woken, in the second it
// does not.
var latencyGaps = []time.Duration{200 * time.Microsecond, 30 * time.Microsecond}

// latencyRows are the rows whose latency is compared.
var latencyRows = []string{gleamdRow, fastRow, bridgeRow}

// latencySamples are one row's.
type latencySamples struct {
	p50, p99   []float64 // µs, by round
	n, lost    int
	replicated uint64 // frames that XDP has replicated
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
			err := onCPU(b.generator, func(<-chan struct{}) error {
				return s.measurement.testbed.latency(ctx, b.opts.Duration/2, s.gap, &s.latencySamples)
			}).wait()
			if err != nil {
				return err
			}
		}
	}
	for _, s := range all {
		c := s.measurement.testbed.benchCase
		b.result.Latency = append(b.result.Latency, Latency{
			Name: s.measurement.row.name, Payload: c.payload, Legs: c.legs, Gap: float64(s.gap.Microseconds()), Samples: s.n, Lost: s.lost,
			Fast: millionth(float64(s.replicated) / float64(max(s.n, 1))), P50: tenth(median(s.p50)), P99: tenth(median(s.p99)),
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
	out, err := openTap(s.star.Hosts[1])
	if err != nil {
		return errors.Join(err, in.Close())
	}
	defer func() { err = errors.Join(err, in.Close(), out.Close()) }()
	receivers, err := s.openReceivers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, receivers.close()) }()
	if s.method.xdp {
		if err := s.sinks.pass(1, true); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.sinks.pass(1, false)) }()
	}
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
	var took []float64
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
		at, err := out.await(start)
		switch {
		case err != nil:
			return err
		case at.IsZero():
			l.lost++
		default:
			l.n++
			took = append(took, float64(at.Sub(start).Nanoseconds())/1e3)
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
	slices.SortFunc(took, cmp.Compare[float64])
	if n := len(took); n > 0 {
		l.p50, l.p99 = append(l.p50, took[n/2]), append(l.p99, took[n*99/100])
	}
	if _, err := s.gen.next(psn); err != nil {
		return err
	}
	return errors.Join(ctx.Err(), receivers.acknowledge())
}

// await returns when the next data packet was there, the zero time if none came.
func (t *packetTap) await(start time.Time) (time.Time, error) {
	var f rocev2.Frame
	for {
		ok, err := t.next(&f)
		now := time.Now()
		switch {
		case err != nil:
			return now, err
		case ok:
			return now, nil
		case now.Sub(start) > latencyLimit:
			return time.Time{}, nil
		}
	}
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
