// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Bounds on the records of refused connections, and on the cost of one address.
const (
	maxRefusers  = 64 // addresses with a record of their own
	maxNamed     = 8  // addresses that an error's text names
	failuresRate = 32 // failed handshakes of one address in a second: beyond it connections are closed at once
)

// refusals are the connections refused during a wait, by address.
type refusals struct {
	id *Identity

	mu        sync.Mutex
	byAddress map[netip.Addr]*refusal
	order     []netip.Addr // addresses in order of arrival
	others    uint64       // refused connections of addresses beyond maxRefusers
}

// refusal is the record of one address.
type refusal struct {
	count  uint64
	first  error
	second time.Time // beginning of the current second
	listed int       // refusals in that second
}

func newRefusals(id *Identity) *refusals {
	return &refusals{id: id, byAddress: make(map[netip.Addr]*refusal)}
}

// add records a refused connection from an address.
func (r *refusals) add(from netip.Addr, now time.Time, err error) {
	total := r.id.refused.Add(1)
	r.mu.Lock()
	f := r.byAddress[from]
	switch {
	case f != nil:
	case len(r.byAddress) == maxRefusers:
		r.others++
	default:
		f = &refusal{first: err}
		r.byAddress[from] = f
		r.order = append(r.order, from)
	}
	if f != nil {
		f.count++
		if now.Sub(f.second) >= time.Second {
			f.second, f.listed = now, 0
		}
		f.listed++
	}
	r.mu.Unlock()
	r.id.log(now, fmt.Sprintf("out-of-band exchange: connection refused: %v (%d refused so far)", err, total))
}

// tooMany reports whether an address has failed so often in this second that its next
// connection is closed without a handshake.
func (r *refusals) tooMany(from netip.Addr, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.byAddress[from]
	return f != nil && f.listed >= failuresRate && now.Sub(f.second) < time.Second
}

// describe names addresses and reasons, for an error's text; "" for none.
func (r *refusals) describe() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for i, from := range r.order[:min(len(r.order), maxNamed)] {
		f := r.byAddress[from]
		b.WriteString([]string{"; refused: ", ", "}[min(i, 1)] + f.first.Error())
		if f.count > 1 {
			fmt.Fprintf(&b, " (the first of %d connections from there)", f.count)
		}
	}
	if n := len(r.order) - maxNamed; n > 0 || r.others > 0 {
		fmt.Fprintf(&b, ", and connections of other addresses")
	}
	return b.String()
}
