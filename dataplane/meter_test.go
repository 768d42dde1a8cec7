// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// histogramOf returns d as the API has it.
func histogramOf(d *Durations) (h api.Histogram) {
	d.AddTo(&h)
	return h
}

// A value is counted up to the first bound that it does not exceed; the last count has no bound.
func TestDurations(t *testing.T) {
	d := newDurations([]time.Duration{time.Millisecond, time.Second})
	for _, x := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, time.Second, 2 * time.Second} {
		d.Add(x)
	}
	h := histogramOf(&d)
	d.AddTo(&h)
	if want := []uint64{4, 4, 2}; !slices.Equal(h.Counts, want) || h.Count() != 10 {
		t.Errorf("counts %v of %d, want %v", h.Counts, h.Count(), want)
	}
	if want := 2 * 3.002000001; h.Sum < want-1e-9 || h.Sum > want+1e-9 {
		t.Errorf("sum %v, want %v", h.Sum, want)
	}
	for _, bounds := range [][]time.Duration{ackBounds, stallBounds, registrationBounds} {
		if !slices.IsSorted(bounds) || len(bounds) < 10 || len(bounds) > 24 {
			t.Errorf("bounds %v", bounds)
		}
	}
}

// meterRig drives the meter of group 0 with source 0, which is at ip.
type meterRig struct {
	meters
	ip netip.Addr
}

func newMeterRig() *meterRig {
	x := &meterRig{meters: newMeters(1), ip: netip.MustParseAddr("10.0.0.1")}
	x.groups[0].setSource(0, x.ip)
	return x
}

func (x *meterRig) data(at time.Duration, psns ...rocev2.PSN) {
	for _, psn := range psns {
		x.groups[0].forwarded(at, x.ip, psn)
	}
}

func (x *meterRig) ackOf(at time.Duration, psn rocev2.PSN) { x.acknowledged(at, 0, 0, psn) }

// sums returns the number of measured waits with their sum, and of stalls.
func (x *meterRig) sums() (acks uint64, wait time.Duration, stalls uint64, stood time.Duration) {
	a, s := histogramOf(&x.ack), histogramOf(&x.stalls)
	return a.Count(), x.ack.sum, s.Count(), x.stalls.sum
}

// The time from a packet to the group's ACK of it is measured, one packet at a time: not that of
// packets behind it, nor of those that are sent again, by others than the source, or acknowledged.
func TestACKTimeIsMeasured(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		do    func(x *meterRig)
		acks  uint64
		total time.Duration
	}{
		{"one packet", func(x *meterRig) { x.data(1*ms, 7); x.ackOf(4*ms, 7) }, 1, 3 * ms},
		{"the first of several", func(x *meterRig) { x.data(1*ms, 7); x.data(2*ms, 8, 9); x.ackOf(4*ms, 9) }, 1, 3 * ms},
		{"an ACK below it", func(x *meterRig) { x.data(1*ms, 7, 8); x.ackOf(2*ms, 6); x.ackOf(5*ms, 8) }, 1, 4 * ms},
		{"a second one, and beyond the last PSN", func(x *meterRig) {
			x.data(1*ms, rocev2.PSNMask)
			x.ackOf(2*ms, rocev2.PSNMask)
			x.data(3*ms, 0)
			x.ackOf(5*ms, 0)
		}, 2, 3 * ms},
		{"sent again", func(x *meterRig) { x.data(1*ms, 7); x.data(3*ms, 7); x.ackOf(4*ms, 7) }, 1, 3 * ms},
		{"acknowledged already", func(x *meterRig) { x.data(1*ms, 7); x.ackOf(2*ms, 7); x.data(3*ms, 7); x.ackOf(9*ms, 7) }, 1, ms},
		{"another member's data", func(x *meterRig) { x.groups[0].forwarded(ms, netip.MustParseAddr("10.0.0.2"), 7); x.ackOf(2*ms, 7) }, 0, 0},
		{"another member's ACK", func(x *meterRig) { x.data(1*ms, 7); x.acknowledged(2*ms, 0, 1, 7) }, 0, 0},
		{"another source", func(x *meterRig) { x.data(1*ms, 7); x.groups[0].setSource(0, x.ip); x.ackOf(2*ms, 7) }, 0, 0},
		{"no source yet", func(x *meterRig) {
			x.groups[0].setSource(0, netip.Addr{})
			x.data(1*ms, 7)
			x.ackOf(2*ms, 7)
		}, 0, 0},
	} {
		x := newMeterRig()
		c.do(x)
		if n, total, stalls, _ := x.sums(); n != c.acks || total != c.total || stalls != 0 {
			t.Errorf("%s: %d times of %v together, %d stalls; want %d, %v and none", c.name, n, total, stalls, c.acks, c.total)
		}
	}
}

// A stall is the time since the ACK moved last, or since there was something to acknowledge. It
// ends with an ACK that moves, with the group's failure or its end.
func TestStallIsMeasured(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name   string
		do     func(x *meterRig)
		stalls uint64
		total  time.Duration
	}{
		{"too short", func(x *meterRig) { x.data(1*s, 7); x.ackOf(2*s-1, 7) }, 0, 0},
		{"until an ACK", func(x *meterRig) { x.data(1*s, 7); x.ackOf(3*s, 7) }, 1, 2 * s},
		{"nothing outstanding", func(x *meterRig) { x.data(1*s, 7); x.ackOf(1*s, 7); x.data(9*s, 8); x.ackOf(9*s, 8) }, 0, 0},
		{"behind a full window", func(x *meterRig) { x.data(1*s, 7, 8, 9); x.ackOf(1*s, 8); x.ackOf(4*s, 9) }, 1, 3 * s},
		{"ACKs that do not move", func(x *meterRig) { x.data(1*s, 7); x.ackOf(1*s, 6); x.ackOf(2*s, 6); x.ackOf(3*s, 7) }, 1, 2 * s},
		{"failure", func(x *meterRig) { x.data(1*s, 7); x.ended(4*s, 0); x.ended(9*s, 0) }, 1, 3 * s},
	} {
		x := newMeterRig()
		c.do(x)
		if _, _, n, total := x.sums(); n != c.stalls || total != c.total {
			t.Errorf("%s: %d stalls of %v together; want %d, %v", c.name, n, total, c.stalls, c.total)
		}
	}
	x := newMeterRig()
	x.data(1*s, 7)
	if got := x.groups[0].stalledFor(3 * s); got != 2*s {
		t.Errorf("a group whose data waits since 2 s stalls for %v", got)
	}
	if x.ackOf(3*s, 7); x.groups[0].stalledFor(9*s) != 0 {
		t.Error("a group without outstanding packets stalls")
	}
}

// Measuring allocates nothing.
func TestMeterAllocatesNothing(t *testing.T) {
	x, psn := newMeterRig(), rocev2.PSN(0)
	if n := testing.AllocsPerRun(1000, func() {
		psn = psn.Next()
		x.data(time.Duration(psn)*time.Second*2, psn)
		x.ackOf(time.Duration(psn)*time.Second*2+1500*time.Millisecond, psn)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkMeter is what a packet of data and its share of an ACK, one for 8 packets, take.
func BenchmarkMeter(b *testing.B) {
	x, psn := newMeterRig(), rocev2.PSN(0)
	for i := range b.N {
		psn = psn.Next()
		x.data(time.Duration(i), psn)
		if i%8 == 7 {
			x.acknowledged(time.Duration(i), 0, mcast.MemberID(0), psn)
		}
	}
}

// A worker's time is busy in batches with packets or closures, and asleep from its sleep on.
func TestLoad(t *testing.T) {
	const ms = time.Millisecond
	var l load
	l.begin(1 * ms)
	l.note(3, false) // 1 to 2 ms
	l.begin(2 * ms)
	l.note(0, false) // polls until 4 ms
	l.begin(4 * ms)
	l.note(0, true)  // closures: 4 to 5 ms
	l.slept = 5 * ms // sleeps until 9 ms
	l.begin(9 * ms)
	l.note(2, false) // 9 to 11 ms
	l.begin(11 * ms)
	if l.busy != 4*ms || l.asleep != 4*ms || l.batches != 2 || l.packets != 5 {
		t.Errorf("busy %v, asleep %v, %d batches of %d packets; want 4ms, 4ms, 2 of 5", l.busy, l.asleep, l.batches, l.packets)
	}
}
