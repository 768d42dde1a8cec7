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

// inquirySteps are the times after a question's first sending at which it goes on: it is sent
// again, and again, given up, and may be asked anew.
var inquirySteps = [...]time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second}

const (
	stepGivenUp = 2 // in stages
	stepOver    = 3
)

// maxInquiries bounds the questions of a port at a time: a stranger there costs so many
// a second, and no other port any.
const maxInquiries = 256

// inquiry is one host that is asked at one port.
type inquiry struct {
	ip              netip.Addr
	newOrigin       origin
	oldOrigin       origin // where it was
	asks            []inquiryAsk
	startedAt       time.Duration
	answeredFromOld bool   // it has answered from where it was
	answeredFromNew bool   // it has answered from at
	notAskedText    string // why it was not asked; "" if it was
}

// inquiryAsk is what the host is asked under one key: once for all groups of that key.
type inquiryAsk struct {
	key          envelope.KeyID
	answered     bool
	group        netip.Addr // one of them
	nonce        envelope.Nonce
	nonceAtOld   envelope.Nonce
	toNew, toOld envelope.Packet
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
	steps [len(inquirySteps)][]*inquiry
}

func newInquiries(ports int) *inquiries {
	return &inquiries{open: make(map[inquiryKey]*inquiry), count: make([]int, ports)}
}

// mayAsk reports whether a host may be asked at a port now.
func (x *inquiries) mayAsk(ip netip.Addr, port int) bool {
	return x.open[inquiryKey{ip, port}] == nil && x.count[port] < maxInquiries
}

// start begins q.
func (x *inquiries) start(q *inquiry) {
	x.open[inquiryKey{q.ip, q.newOrigin.port}] = q
	x.count[q.newOrigin.port]++
	x.steps[0] = append(x.steps[0], q)
}

// next says when take has something.
func (x *inquiries) next() (at time.Duration, ok bool) {
	for i, t := range x.steps {
		if len(t) > 0 {
			if due := t[0].startedAt + inquirySteps[i]; !ok || due < at {
				at, ok = due, true
			}
		}
	}
	return at, ok
}

// take returns an inquiry that has come to the end of a stage, nil if there is none now.
func (x *inquiries) take(now time.Duration) (q *inquiry, stage int) {
	for i := range x.steps {
		t := &x.steps[i]
		if len(*t) == 0 || now < (*t)[0].startedAt+inquirySteps[i] {
			continue
		}
		q = (*t)[0]
		(*t)[0] = nil
		*t = (*t)[1:]
		if i+1 < len(x.steps) {
			x.steps[i+1] = append(x.steps[i+1], q)
		} else {
			delete(x.open, inquiryKey{q.ip, q.newOrigin.port})
			x.count[q.newOrigin.port]--
		}
		return q, i
	}
	return nil, 0
}

// answered finds the inquiry that a Here from spot s answers, and the ask. moved says
// that it is the host's new place, else it is the old one. What answers no open inquiry,
// or from elsewhere, gives nil.
func (x *inquiries) answered(ip netip.Addr, n envelope.Nonce, s origin) (q *inquiry, a *inquiryAsk, moved bool) {
	if q := x.open[inquiryKey{ip, s.port}]; q != nil && q.newOrigin == s {
		if a := q.find(n, false); a != nil {
			return q, a, true
		}
	}
	for port := range x.count {
		q := x.open[inquiryKey{ip, port}]
		if q != nil && q.oldOrigin.port == s.port && q.oldOrigin.mac == s.mac {
			if a := q.find(n, true); a != nil {
				return q, a, false
			}
		}
	}
	return nil, nil, false
}

func (q *inquiry) find(n envelope.Nonce, home bool) *inquiryAsk {
	for i := range q.asks {
		a := &q.asks[i]
		if home && a.nonceAtOld == n || !home && a.nonce == n {
			return a
		}
	}
	return nil
}
