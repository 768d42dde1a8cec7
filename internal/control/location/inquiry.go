// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
)

// Inquiries: a member that seems to have moved is asked at the new origin and at the old
// one. Its answer moves it if it comes from the origin that its nonce was sent to.

// inquirySteps are the times since an inquiry's start at which its steps are due: it is
// sent a second time, a third time, given up, and over, after which the member may be
// asked again.
var inquirySteps = [...]time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second}

const stepGivenUp = 2 // index in inquirySteps

// maxInquiries bounds the open inquiries of a port: a stranger there can cause that many
// per second, and none at other ports.
const maxInquiries = 256

// inquiry is the inquiry to one host at one port.
type inquiry struct {
	ip              netip.Addr
	newOrigin       dataplane.Origin
	oldOrigin       dataplane.Origin // where the host was located
	parts           []inquiryPart
	startedAt       time.Duration
	answeredFromOld bool   // an answer came from oldOrigin
	answeredFromNew bool   // an answer came from newOrigin
	notSentReason   string // why no envelope was sent; "" if one was
}

// inquiryPart is an inquiry's part under one key: one for all groups of that key.
type inquiryPart struct {
	key          envelope.KeyID
	answered     bool
	group        netip.Addr // one of these groups
	nonce        envelope.Nonce
	nonceAtOld   envelope.Nonce
	toNew, toOld envelope.Packet
}

// inquiryKey identifies an inquiry: a host is asked once at each port.
type inquiryKey struct {
	ip   netip.Addr
	port int
}

// inquiries are those that are open, which ends a second after their start. It does not
// read a clock.
type inquiries struct {
	open  map[inquiryKey]*inquiry
	count []int // the number of open inquiries, by port
	steps [len(inquirySteps)][]*inquiry
}

func newInquiries(ports int) *inquiries {
	return &inquiries{open: make(map[inquiryKey]*inquiry), count: make([]int, ports)}
}

// mayStart reports whether an inquiry to a host may start at a port now.
func (x *inquiries) mayStart(ip netip.Addr, port int) bool {
	return x.open[inquiryKey{ip, port}] == nil && x.count[port] < maxInquiries
}

// start opens q.
func (x *inquiries) start(q *inquiry) {
	x.open[inquiryKey{q.ip, q.newOrigin.Port}] = q
	x.count[q.newOrigin.Port]++
	x.steps[0] = append(x.steps[0], q)
}

// next returns when take returns an inquiry next; ok is false if none is open.
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

// take returns an inquiry whose next step is due, and the index of that step; nil if
// there is none.
func (x *inquiries) take(now time.Duration) (q *inquiry, step int) {
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
			delete(x.open, inquiryKey{q.ip, q.newOrigin.Port})
			x.count[q.newOrigin.Port]--
		}
		return q, i
	}
	return nil, 0
}

// answered returns the inquiry, and the part of it, that a Here from origin s answers.
// moved says whether s is the host's new origin or its old one. The results are nil if
// the answer belongs to no open inquiry, or comes from elsewhere.
func (x *inquiries) answered(ip netip.Addr, n envelope.Nonce, s dataplane.Origin) (q *inquiry, a *inquiryPart, moved bool) {
	if q := x.open[inquiryKey{ip, s.Port}]; q != nil && q.newOrigin == s {
		if a := q.find(n, false); a != nil {
			return q, a, true
		}
	}
	for port := range x.count {
		q := x.open[inquiryKey{ip, port}]
		if q != nil && q.oldOrigin.Port == s.Port && q.oldOrigin.MAC == s.MAC {
			if a := q.find(n, true); a != nil {
				return q, a, false
			}
		}
	}
	return nil, nil, false
}

func (q *inquiry) find(n envelope.Nonce, home bool) *inquiryPart {
	for i := range q.parts {
		a := &q.parts[i]
		if home && a.nonceAtOld == n || !home && a.nonce == n {
			return a
		}
	}
	return nil
}

// Request is a question to a host that is open.
type Request struct {
	Group  netip.Addr // the group in whose name it was sent; the zero value in a proof
	Key    envelope.KeyID
	Origin dataplane.Origin // where it was sent
	Nonce  envelope.Nonce   // what an answer from there has; zeros: none was sent
}

// ProofOf returns the questions for the proof of a host under a key: that at its place, and that at another origin.
func (m *Inquirer) ProofOf(ip netip.Addr, key envelope.KeyID) (list [2]Request) {
	if p := m.proofs.by[proofKey{ip, key}]; p != nil {
		for i := range p.requests {
			list[i] = Request{Key: key, Origin: p.requests[i].origin, Nonce: p.requests[i].nonce}
		}
	}
	return list
}

// InquiriesOf returns the questions of the inquiries to a host, at the new origins and at the old ones.
func (m *Inquirer) InquiriesOf(ip netip.Addr) (list []Request) {
	for k, q := range m.inquiries.open {
		for i := range q.parts {
			if a := &q.parts[i]; k.ip == ip {
				list = append(list, Request{a.group, a.key, q.newOrigin, a.nonce}, Request{a.group, a.key, q.oldOrigin, a.nonceAtOld})
			}
		}
	}
	return list
}
