// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"container/heap"
	"net/netip"
	"time"
)

// Hosts that are no members. Registrations and envelopes want to know where they are;
// the answers are kept for a while, and follow changes like those of members.

const (
	// guestTime is how long a guest is remembered after it was of use.
	guestTime = 5 * time.Second
	// guestRoom bounds the guests that envelopes bring. Registrations bring as many as
	// their limits admit.
	guestRoom = 4096
	// freshTime is how old an answer may be that a registration relies on.
	freshTime = time.Second
)

// guest is a host on the list of those that are forgotten.
type guest struct {
	h     *host
	until time.Duration
}

// guest returns the host of that address; nil if it is not known, and there is no room.
func (x *hosts) guest(ip netip.Addr, room int, now time.Duration) *host {
	h := x.byIP[ip]
	if h == nil {
		if len(x.guests) >= room {
			return nil
		}
		h = x.add(ip)
	}
	h.used = now
	if !h.member() {
		x.list(h, now)
	}
	return h
}

// list has h forgotten some time after its last use.
func (x *hosts) list(h *host, now time.Duration) {
	if !h.listed {
		h.listed = true
		x.guests = append(x.guests, guest{h, now + guestTime})
	}
}

// expire forgets guests that were not of use for guestTime.
func (x *hosts) expire(now time.Duration) {
	for len(x.guests) > 0 && x.guests[0].until <= now {
		h := x.guests[0].h
		x.guests = x.guests[1:]
		h.listed = false
		switch {
		case h.member() || x.byIP[h.ip] != h:
		case len(h.waiting) > 0 || h.used+guestTime > now:
			x.list(h, now)
		default:
			x.forget(h)
		}
	}
}

// retries are hosts without an answer, as a heap by the time of the next question.
type retries []*host

func (q *retries) put(h *host) {
	if h.index >= 0 {
		heap.Fix(q, h.index)
		return
	}
	heap.Push(q, h)
}

func (q *retries) remove(h *host) {
	if h.index >= 0 {
		heap.Remove(q, h.index)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q retries) Len() int           { return len(q) }
func (q retries) Less(i, j int) bool { return q[i].retry < q[j].retry }

func (q retries) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *retries) Push(x any) {
	h := x.(*host)
	h.index = len(*q)
	*q = append(*q, h)
}

func (q *retries) Pop() any {
	old := *q
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	h.index = -1
	return h
}
