// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

// A registration outlasts its members where one of them may still wait for an
// acknowledgement: it drains, until all members have answered their DREQs. Linux answers a
// DREQ when the program disconnects. Two groups drain:
//
//   - a session whose followers' data is acknowledged by the switch, when its dialler has left:
//     a program of a follower may send its last message after that.
//   - a group that everybody connects to, when all members but one have left: the
//     acknowledgement of the last message may be lost, and the last member sends the message
//     again.

// drainTries is how often a DREQ is sent in a group that drains: each second.
const drainTries = 30

// drains reports whether the registration of l stays as it is although its members have left.
// Members that come, and a session that waits for an address, end this.
func (l *listener) drains() bool {
	switch {
	case l.ending == 0 || len(l.registered) < minMembers:
		return false
	case l.dialler != nil:
		return l.Replies == Leader && l.dialler.state >= lingering && !l.front.isAwaited()
	}
	for _, c := range l.members {
		if c.state != lingering {
			return false
		}
	}
	return true
}

// isAwaited reports whether a session of f waits for an address.
func (f *front) isAwaited() bool {
	for _, l := range f.sessions {
		if !l.key.IsValid() {
			return true
		}
	}
	return false
}

// dreqTries returns how often a DREQ to c is sent.
func (c *connection) dreqTries() int {
	if c.listener.drains() {
		return drainTries
	}
	return leaveTries
}

// dismiss ends the last connection to a group that everybody connects to, when the others
// have left.
func (m *Manager) dismiss(l *listener) {
	if l.dialler != nil || l.registered == nil || len(l.members) != 1 {
		return
	}
	for _, c := range l.members {
		if c.state == replied || c.state == established {
			m.end(c, Refusal{Reason: ConsumerReject, Code: GroupEnded, Text: "too few members are left"})
		}
	}
}
