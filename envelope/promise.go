// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

// promises reports whether a message says of a group what has to be so after a restart of the
// switch: that a member is one, or is none any more. Its driver sends it when that is durable.
// A Challenge, a Reject and a Where ask or refuse; the answer to a Renew repeats what was said.
func promises(b Body) bool {
	switch x := b.(type) {
	case *Challenge, *Reject, *Where:
		return false
	case *Accept:
		return x.Request != TypeRenew
	case *Notice:
		return x.Kind == NoticeFailed
	}
	return true
}

// lasts reports whether a message says what nobody asks for: that a membership has ended. Its driver
// keeps it until it has left, also when it is repeated no more.
func lasts(b Body) bool {
	_, is := b.(*Gone)
	return is
}

// lasts is that of messages between switches.
func (k relayKind) lasts() bool { return k == relayGone || k == relayEnd }

// promises is that of messages between switches: a neighbour that gets one forgets, or takes for
// granted, what the sender has done.
func (k relayKind) promises() bool {
	switch k {
	case relayCommit, relayCommitted, relayEnd, relayEnded, relayGone, relayNoted:
		return true
	}
	return false
}
