// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// targetStep is a look at a target: what has been added to its numbers since the last one.
type targetStep struct {
	at                  time.Duration
	support             Support
	sent, lost, skipped uint64
	want                TargetState
}

const s = time.Second

var targetCases = []struct {
	name  string
	steps []targetStep
}{
	{"all is well", []targetStep{
		{0, Takes, 100, 0, 0, TargetUsed}, {1 * s, Takes, 1000, 0, 0, TargetUsed}, {100 * s, Unknown, 1000, 0, 0, TargetUsed},
	}},
	{"the kernel says no, and yes again", []targetStep{
		{0, TakesNone, 0, 0, 0, TargetUnable}, {1 * s, TakesNone, 0, 0, 0, TargetUnable}, {2 * s, Takes, 0, 0, 0, TargetUsed},
	}},
	{"a kernel that does not know has no objection", []targetStep{
		{0, TakesNone, 0, 0, 0, TargetUnable}, {1 * s, Unknown, 0, 0, 0, TargetUsed},
	}},
	{"all copies are lost", []targetStep{
		{0, Takes, 0, 0, 0, TargetUsed}, {100 * time.Millisecond, Takes, 0, 63, 0, TargetUsed}, {200 * time.Millisecond, Takes, 0, 1, 0, TargetLossy},
	}},
	{"most copies are lost", []targetStep{
		{0, Takes, 0, 0, 0, TargetUsed}, {100 * time.Millisecond, Takes, 100, 100, 0, TargetUsed}, {200 * time.Millisecond, Takes, 100, 101, 0, TargetLossy},
	}},
	{"a receiver is too slow for half of them", []targetStep{
		{0, Takes, 0, 0, 0, TargetUsed}, {1 * s, Takes, 5000, 4999, 0, TargetUsed}, {2 * s, Takes, 5000, 4999, 0, TargetUsed},
	}},
	{"losses of another second do not count", []targetStep{
		{0, Takes, 0, 0, 0, TargetUsed}, {1 * s, Takes, 0, 63, 0, TargetUsed}, {2 * s, Takes, 0, 63, 0, TargetUsed}, {3 * s, Takes, 0, 63, 0, TargetUsed},
	}},
	{"a burst is judged whatever was sent long before", []targetStep{
		{0, Takes, 0, 0, 0, TargetUsed}, {1 * s, Takes, 1e6, 0, 0, TargetUsed}, {1100 * time.Millisecond, Takes, 0, 64, 0, TargetLossy},
	}},
	{"copies go nowhere", []targetStep{
		{0, Unknown, 0, 0, 0, TargetUsed}, {100 * time.Millisecond, Unknown, 0, 0, 3, TargetUsed}, {200 * time.Millisecond, Unknown, 0, 0, 1, TargetLossy},
	}},
	{"some copies are skipped, others sent", []targetStep{
		{0, Unknown, 0, 0, 0, TargetUsed}, {100 * time.Millisecond, Unknown, 1, 0, 9, TargetUsed},
	}},
	{"it is tried again, and lossy for longer", []targetStep{
		{0, Takes, 0, 64, 0, TargetLossy}, {9 * s, Takes, 0, 0, 0, TargetLossy}, {10 * s, Takes, 0, 500, 0, TargetTried},
		{11 * s, Takes, 0, 7, 0, TargetTried}, {11500 * time.Millisecond, Takes, 0, 8, 0, TargetLossy},
		{31 * s, Takes, 0, 0, 0, TargetLossy}, {32 * s, Takes, 0, 0, 0, TargetTried},
	}},
	{"it is tried again, and well", []targetStep{
		{0, Takes, 0, 64, 0, TargetLossy}, {10 * s, Takes, 0, 0, 0, TargetTried}, {19 * s, Takes, 10, 0, 0, TargetTried},
		{20 * s, Takes, 10, 0, 0, TargetUsed},
		{21 * s, Takes, 10, 0, 0, TargetUsed}, {21500 * time.Millisecond, Takes, 0, 64, 0, TargetLossy}, {31500 * time.Millisecond, Takes, 0, 0, 0, TargetTried},
	}},
	{"a trial without copies proves nothing", []targetStep{
		{0, Takes, 0, 64, 0, TargetLossy}, {10 * s, Takes, 0, 0, 0, TargetTried}, {30 * s, Takes, 0, 0, 0, TargetTried}, {31 * s, Takes, 0, 8, 0, TargetLossy},
	}},
	{"the other end is repaired while it is lossy", []targetStep{
		{0, Takes, 0, 64, 0, TargetLossy}, {1 * s, TakesNone, 0, 0, 0, TargetUnable}, {2 * s, Takes, 0, 0, 0, TargetUsed},
	}},
}

func TestTarget(t *testing.T) {
	for _, tc := range targetCases {
		var x Target
		r := TargetReport{Transmitted: Transmitted{Sent: 7, Lost: 1000}, Skipped: 1000} // of an interface before
		x.Look(0, &r)
		was := TargetUsed
		for i, step := range tc.steps {
			r.Support = step.support
			r.Transmitted.Sent += step.sent
			r.Transmitted.Lost += step.lost
			r.Skipped += step.skipped
			changed := x.Look(step.at, &r)
			is, since, until := x.State()
			if is != step.want || changed != (is != was) || changed && since != step.at {
				t.Fatalf("%s, step %d: %v since %v (changed: %v), want %v", tc.name, i, is, since, changed, step.want)
			}
			if usable := is == TargetUsed || is == TargetTried; x.Usable() != usable {
				t.Errorf("%s, step %d: %v, usable: %v", tc.name, i, is, x.Usable())
			}
			if reason, remedy := x.Why("veth"); (reason == "") != x.Usable() || (remedy == "") != x.Usable() {
				t.Errorf("%s, step %d: %v has reason %q, remedy %q", tc.name, i, is, reason, remedy)
			}
			if (until > step.at) != (is == TargetLossy) {
				t.Errorf("%s, step %d: %v until %v", tc.name, i, is, until)
			}
			was = is
		}
	}
}

// Waits become longer up to a bound.
func TestTargetWaits(t *testing.T) {
	var x Target
	var r TargetReport
	x.Look(0, &r)
	now, last := time.Duration(0), time.Duration(0)
	for range 20 {
		r.Transmitted.Lost += 100
		if !x.Look(now, &r) {
			t.Fatalf("%v: 100 lost copies are not noticed", now)
		}
		_, since, until := x.State()
		if wait := until - since; wait < last || wait > targetLastWait {
			t.Fatalf("waits for %v after %v", wait, last)
		} else {
			last = wait
		}
		now = until
		if !x.Look(now, &r) {
			t.Fatalf("%v: it is not tried again", now)
		}
		now += time.Second / 10
	}
	if last != targetLastWait {
		t.Errorf("the last wait was %v", last)
	}
}

func TestTargetWhy(t *testing.T) {
	unable, lossy, refused, skipped := Target{}, Target{}, Target{}, Target{}
	for _, x := range []*Target{&unable, &lossy, &refused, &skipped} {
		x.Look(0, &TargetReport{})
	}
	unable.Look(0, &TargetReport{Support: TakesNone})
	lossy.Look(0, &TargetReport{Transmitted: Transmitted{Sent: 36, Lost: 64}})
	refused.Look(0, &TargetReport{Transmitted: Transmitted{Lost: 64, Error: unix.ENXIO}})
	skipped.Look(0, &TargetReport{Skipped: 10})
	const atPeer = "turn on GRO at the interface's peer (ethtool -K PEER gro on), or attach an XDP program there"
	const counters = "the receiver behind the port may be too slow, or the driver short of queues: see the counters of `ethtool -S`"
	for _, tc := range []struct {
		target                 *Target
		driver, reason, remedy string
	}{
		{&unable, "veth", "the veth's peer takes no redirected frames", atPeer},
		{&unable, "", "the driver, unknown, takes no redirected frames now", "see its documentation on XDP_REDIRECT (ndo_xdp_xmit): some need more queues, or a smaller MTU"},
		{&lossy, "veth", "the driver lost 64 of 100 copies", counters},
		{&refused, "veth", "the driver lost 64 of 64 copies (no such device or address)", atPeer},
		{&refused, "mlx5_core", "the driver lost 64 of 64 copies (no such device or address)", counters},
		{&skipped, "veth", "no copy came to the port", atPeer},
	} {
		if reason, remedy := tc.target.Why(tc.driver); reason != tc.reason || remedy != tc.remedy {
			t.Errorf("%q, %q; want %q, %q", reason, remedy, tc.reason, tc.remedy)
		}
	}
}
