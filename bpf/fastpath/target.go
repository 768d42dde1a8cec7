// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Support is what the kernel says of an interface: whether its driver takes frames that
// XDP redirects to it.
type Support uint8

// The kernel knows since Linux 6.3.
const (
	Unknown Support = iota
	Takes
	TakesNone
)

// TargetState is the state of a Target.
type TargetState uint8

const (
	TargetUsed   TargetState = iota // copies are sent to it
	TargetUnable                    // the kernel says that its driver takes none
	TargetLossy                     // its driver has lost most; it is tried again
	TargetTried                     // a lossy target that is tried again
	numTargetStates
)

// String returns the name of s in the API.
func (s TargetState) String() string {
	if s < numTargetStates {
		return [...]string{"used", "unable", "lossy", "tried"}[s]
	}
	return "invalid"
}

// Bounds of what a target may lose, and of how long it is left alone then.
const (
	targetWindow    = time.Second // the time in which losses are summed up
	targetLost      = 64          // copies lost in it, and more lost than sent: lossy
	targetTriedLost = 8           // likewise, of a target that is tried again
	targetSkipped   = 4           // times in it that a leg was left out, and none sent: lossy
	targetFirstWait = 10 * time.Second
	targetLastWait  = 10 * time.Minute
	targetTrial     = 10 * time.Second // the time without losses after which a target is as good as any
)

// TargetReport is what has become of the copies for a port. The numbers only grow.
type TargetReport struct {
	Support     Support
	Transmitted Transmitted
	Skipped     uint64 // times that a leg's gate was open, and no copy came to it
}

// Target decides whether the fast path may use a port: whether copies that XDP sends there
// arrive at its driver. It reads no clock and asks nobody. The zero value is used; losses
// before its first report do not count.
type Target struct {
	state  TargetState
	since  time.Duration // the time when the state began
	until  time.Duration // TargetLossy: when it is tried again
	waits  int           // TargetLossy, TargetTried: times in sequence that it was lossy
	seen   bool          // true: there was a report
	begin  time.Duration // the begin of the window
	before TargetReport  // the report at the window's begin
	lost   uint64        // copies lost in the window: why it is lossy
	sent   uint64        // copies sent in the window
	err    error         // the driver's error in the window
}

// Look takes a report, at most some times a second, and reports whether the state has
// changed.
func (t *Target) Look(now time.Duration, r *TargetReport) (changed bool) {
	was := t.state
	if !t.seen {
		t.seen, t.begin, t.before = true, now, *r
	}
	switch {
	case r.Support == TakesNone && t.state != TargetUnable:
		t.enter(TargetUnable, now, r)
	case r.Support == TakesNone:
	case t.state == TargetUnable:
		t.waits = 0
		t.enter(TargetUsed, now, r)
	case t.state == TargetLossy:
		if now >= t.until {
			t.enter(TargetTried, now, r)
		}
	case t.loses(r):
		t.until = now + min(targetFirstWait<<min(t.waits, 16), targetLastWait)
		t.waits++
		t.enter(TargetLossy, now, r)
	case t.state == TargetTried && now-t.since >= targetTrial && r.Transmitted.Sent != t.before.Transmitted.Sent:
		t.waits = 0
		t.enter(TargetUsed, now, r)
	case now-t.begin >= targetWindow:
		t.begin, t.before = now, *r
	}
	return t.state != was
}

// enter changes the state, and begins a window.
func (t *Target) enter(s TargetState, now time.Duration, r *TargetReport) {
	t.state, t.since, t.begin, t.before = s, now, now, *r
}

// loses reports whether most copies of the window were lost.
func (t *Target) loses(r *TargetReport) bool {
	x, was := &r.Transmitted, &t.before.Transmitted
	t.sent, t.lost, t.err = x.Sent-was.Sent, x.Lost-min(x.Lost, was.Lost), x.Error
	least := uint64(targetLost)
	if t.state == TargetTried {
		least = targetTriedLost
	}
	return t.lost >= least && t.lost > t.sent || t.sent == 0 && r.Skipped-t.before.Skipped >= targetSkipped
}

// Usable reports whether the fast path may use the port.
func (t *Target) Usable() bool { return t.state == TargetUsed || t.state == TargetTried }

// State returns the state, since when, and if that is TargetLossy, when it ends.
func (t *Target) State() (s TargetState, since, until time.Duration) {
	if t.state == TargetLossy {
		until = t.until
	}
	return t.state, t.since, until
}

// Why is the reason why the port is not used, and what helps; both are empty if it is.
// driver is that of the interface.
func (t *Target) Why(driver string) (reason, remedy string) {
	const atPeer = "turn on GRO at the interface's peer (ethtool -K PEER gro on), or attach an XDP program there"
	switch t.state {
	case TargetUnable:
		if driver == "veth" {
			return "the veth's peer takes no redirected frames", atPeer
		}
		return fmt.Sprintf("the driver, %s, takes no redirected frames now", driverName(driver)), "see its documentation on XDP_REDIRECT (ndo_xdp_xmit): some need more queues, or a smaller MTU"
	case TargetLossy:
		reason = fmt.Sprintf("the driver lost %d of %d copies", t.lost, t.lost+t.sent)
		if t.err != nil {
			reason += fmt.Sprintf(" (%v)", t.err)
		}
		if t.lost == 0 {
			reason = "no copy came to the port"
		}
		if driver == "veth" && (errors.Is(t.err, unix.ENXIO) || t.lost == 0) {
			return reason, atPeer
		}
		return reason, "the receiver behind the port may be too slow, or the driver short of queues: see the counters of `ethtool -S`"
	}
	return "", ""
}

func driverName(driver string) string {
	if driver == "" {
		return "unknown"
	}
	return driver
}
