// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
)

// request is the NAK that the source was sent last: it is asked for a packet, to wait, or told that it is in error.
type request struct {
	psn      rocev2.PSN
	severity severity // sevNone: no NAK counts
	served   bool     // the source has sent psn since
}

// isOpen reports whether the source has not sent what it was asked for. It waits out an RNR timer, or the NAK was lost.
func (r *request) isOpen() bool { return r.severity != sevNone && !r.served }

// awaits reports whether the source has been asked for psn, and has not sent it since.
func (r *request) awaits(psn rocev2.PSN) bool { return r.isOpen() && r.psn == psn }

// serve notes that psn has come.
func (r *request) serve(psn rocev2.PSN) {
	if r.severity != sevNone && psn == r.psn {
		r.served = true
	}
}

// refusal is a request of the source that is forwarded to nobody: the switch itself
// answers it by a fatal NAK, as if it were one more receiver (R27, R28).
type refusal struct {
	psn      rocev2.PSN
	syndrome rocev2.Syndrome // 0: nothing is refused
	reason   Reason
}

func (g *group) setRefusal(r refusal) {
	g.refusal = r
	g.set(refused, r.syndrome != 0)
}
