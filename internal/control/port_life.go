// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// portPhase is the state of a slot's port, as the control loop has it.
type portPhase uint8

const (
	portNone    portPhase = iota // the slot has no port
	portOpen                     // XDP program and sockets are at an interface
	portLost                     // the interface has vanished; one of its name is waited for
	portOpening                  // an interface of the port's name is being opened
	portRefused                  // an interface that could not be opened; it is tried again at retryAt
	numPortPhases
)

// String returns the name of x in the API.
func (x portPhase) String() string {
	return [...]string{"none", "open", "lost", "opening", "refused"}[x]
}

// portEvent is what a portLife reacts to.
type portEvent uint8

const (
	portAdded    portEvent = iota // a reload has added the port, and it is open
	portVanished                  // the workers have lost the interface
	portSeen                      // the kernel has an interface of the port's name
	portUnseen                    // the kernel has none
	portOpened                    // the interface that was being opened is open
	portDenied                    // an interface that could not be opened
	portRemoved                   // a reload has removed the port
	numPortEvents
)

// Intervals at which an interface that cannot be opened is tried again.
const (
	firstPortRetry = time.Second
	lastPortRetry  = 32 * time.Second
)

// portLife is the state machine of a slot's port. It does not read a clock.
type portLife struct {
	phase    portPhase
	ifindex  int           // the interface that was tried last
	refusals int           // refusals of that interface, in sequence
	retryAt  time.Duration // the time to try again, if phase is portRefused
	reason   string        // why it could not be opened, if phase is portRefused
	reopened uint64        // times that the port was taken up again
}

// apply is the transition function. It reports whether the interface is to be opened now;
// ifindex is that of portSeen, reason that of portDenied. An event without meaning in the
// present phase changes nothing.
func (l *portLife) apply(now time.Duration, e portEvent, ifindex int, reason string) (open bool) {
	switch e {
	case portAdded:
		if l.phase == portNone {
			*l = portLife{phase: portOpen}
		}
	case portRemoved:
		*l = portLife{}
	case portVanished:
		if l.phase == portOpen {
			l.phase, l.refusals, l.ifindex = portLost, 0, 0
		}
	case portUnseen:
		if l.phase == portRefused {
			l.phase, l.refusals, l.ifindex, l.reason = portLost, 0, 0, ""
		}
	case portSeen:
		another := l.phase == portLost || ifindex != l.ifindex
		if l.phase != portLost && (l.phase != portRefused || !another && now < l.retryAt) {
			return false
		}
		if another {
			l.refusals = 0
		}
		l.phase, l.ifindex, l.reason = portOpening, ifindex, ""
		return true
	case portOpened:
		if l.phase == portOpening {
			l.phase, l.refusals = portOpen, 0
			l.reopened++
		}
	case portDenied:
		if l.phase == portOpening {
			l.phase, l.reason = portRefused, reason
			l.retryAt = now + min(firstPortRetry<<min(l.refusals, 10), lastPortRetry)
			l.refusals++
		}
	}
	return false
}

// next returns when portSeen may open the interface again; ok is false if that needs no
// time to pass.
func (l *portLife) next() (at time.Duration, ok bool) { return l.retryAt, l.phase == portRefused }
