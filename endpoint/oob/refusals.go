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

// Bounds of what is remembered of refused connections, and of what one address
// may cost.
const (
	maxRefusers  = 64 // addresses told apart
	maxNamed     = 8  // of these in an error's text
	failuresRate = 32 // failed handshakes of one address in a second: further connections are closed at once
)

// refusals are the connections that were refused while a side waited, by
// address.
type refusals struct {
	id *Identity

	mu        sync.Mutex
	byAddress map[netip.Addr]*refusal
	order     []netip.Addr // as they came
	others    uint64       // connections of addresses beyond maxRefusers
}

// refusal is what is known of one address.
type refusal struct {
	count  uint64
	first  error
	second time.Time // a second that began then
	listed int       // refusals within it
}

func newRefusals(id *Identity) *refusals {
	return &refusals{id: id, byAddress: make(map[netip.Addr]*refusal)}
}

// add notes that a connection from an address was refused.
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

// tooMany says whether an address has failed so often that its next connection
// is not worth a handshake.
func (r *refusals) tooMany(from netip.Addr, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.byAddress[from]
	return f != nil && f.listed >= failuresRate && now.Sub(f.second) < time.Second
}

// describe names addresses and why, in the words of an error; "" for none.
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
