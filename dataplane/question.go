// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// A member that seems to be elsewhere is asked: there, and where it was. Its answer
// moves it if it comes from the spot that its nonce was sent to.

// stages are the times after a question's first sending at which it goes on: it is sent
// again, and again, given up, and may be asked anew.
var stages = [...]time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second}

const (
	stageGivenUp = 2 // in stages
	stageOver    = 3
)

// maxQuestions bounds the questions of a port at a time: a stranger there costs so many
// a second, and no other port any.
const maxQuestions = 256

// inquiry is one host that is asked at one port.
type inquiry struct {
	ip      netip.Addr
	at      spot
	home    spot // where it was
	asks    []asked
	began   time.Duration
	atHome  bool   // it has answered from where it was
	moved   bool   // it has answered from at
	because string // why it was not asked; "" if it was
}

// asked is what the host is asked under one key: once for all groups of that key.
type asked struct {
	key          envelope.KeyID
	answered     bool
	group        netip.Addr // one of them
	nonce        envelope.Nonce
	nonceAtHome  envelope.Nonce
	packet, home envelope.Packet
}

// inquiryKey names an inquiry: a host is asked once at each port.
type inquiryKey struct {
	ip   netip.Addr
	port int
}

// inquiries are those that are under way, or were within the last second. They have no clock.
type inquiries struct {
	open  map[inquiryKey]*inquiry
	count []int // by port
	turns [len(stages)][]*inquiry
}

func newInquiries(ports int) *inquiries {
	return &inquiries{open: make(map[inquiryKey]*inquiry), count: make([]int, ports)}
}

// may reports whether a host may be asked at a port now.
func (x *inquiries) may(ip netip.Addr, port int) bool {
	return x.open[inquiryKey{ip, port}] == nil && x.count[port] < maxQuestions
}

// add begins q.
func (x *inquiries) add(q *inquiry) {
	x.open[inquiryKey{q.ip, q.at.port}] = q
	x.count[q.at.port]++
	x.turns[0] = append(x.turns[0], q)
}

// next says when take has something.
func (x *inquiries) next() (at time.Duration, ok bool) {
	for i, t := range x.turns {
		if len(t) > 0 {
			if due := t[0].began + stages[i]; !ok || due < at {
				at, ok = due, true
			}
		}
	}
	return at, ok
}

// take returns an inquiry that has come to the end of a stage, nil if there is none now.
func (x *inquiries) take(now time.Duration) (q *inquiry, stage int) {
	for i := range x.turns {
		t := &x.turns[i]
		if len(*t) == 0 || now < (*t)[0].began+stages[i] {
			continue
		}
		q = (*t)[0]
		(*t)[0] = nil
		*t = (*t)[1:]
		if i+1 < len(x.turns) {
			x.turns[i+1] = append(x.turns[i+1], q)
		} else {
			delete(x.open, inquiryKey{q.ip, q.at.port})
			x.count[q.at.port]--
		}
		return q, i
	}
	return nil, 0
}

// answered finds the inquiry that a Here from spot s answers, and the ask. moved says
// that it is the host's new place, else it is the old one. What answers no open inquiry,
// or from elsewhere, gives nil.
func (x *inquiries) answered(ip netip.Addr, n envelope.Nonce, s spot) (q *inquiry, a *asked, moved bool) {
	if q := x.open[inquiryKey{ip, s.port}]; q != nil && q.at == s {
		if a := q.find(n, false); a != nil {
			return q, a, true
		}
	}
	for port := range x.count {
		q := x.open[inquiryKey{ip, port}]
		if q != nil && q.home.port == s.port && q.home.mac == s.mac {
			if a := q.find(n, true); a != nil {
				return q, a, false
			}
		}
	}
	return nil, nil, false
}

func (q *inquiry) find(n envelope.Nonce, home bool) *asked {
	for i := range q.asks {
		a := &q.asks[i]
		if home && a.nonceAtHome == n || !home && a.nonce == n {
			return a
		}
	}
	return nil
}
