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
	// guestTTL is how long a guest is remembered after it was of use.
	guestTTL = 5 * time.Second
	// maxGuests bounds the guests that envelopes bring. Registrations bring as many as
	// their limits admit.
	maxGuests = 4096
	// maxAnswerAge is how old an answer may be that a registration relies on.
	maxAnswerAge = time.Second
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
	h.lastUsed = now
	if !h.isMember() {
		x.listGuest(h, now)
	}
	return h
}

// listGuest has h forgotten some time after its last use.
func (x *hosts) listGuest(h *host, now time.Duration) {
	if !h.onGuestList {
		h.onGuestList = true
		x.guests = append(x.guests, guest{h, now + guestTTL})
	}
}

// expireGuests forgets guests that were not of use for guestTTL.
func (x *hosts) expireGuests(now time.Duration) {
	for len(x.guests) > 0 && x.guests[0].until <= now {
		h := x.guests[0].h
		x.guests = x.guests[1:]
		h.onGuestList = false
		switch {
		case h.isMember() || x.byIP[h.ip] != h:
		case len(h.waitingGroups) > 0 || h.lastUsed+guestTTL > now:
			x.listGuest(h, now)
		default:
			x.forget(h)
		}
	}
}

// retryHeap are hosts without an answer, as a heap by the time of the next question.
type retryHeap []*host

func (q *retryHeap) put(h *host) {
	if h.retryIndex >= 0 {
		heap.Fix(q, h.retryIndex)
		return
	}
	heap.Push(q, h)
}

func (q *retryHeap) remove(h *host) {
	if h.retryIndex >= 0 {
		heap.Remove(q, h.retryIndex)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (q retryHeap) Len() int           { return len(q) }
func (q retryHeap) Less(i, j int) bool { return q[i].retryAt < q[j].retryAt }

func (q retryHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].retryIndex, q[j].retryIndex = i, j
}

func (q *retryHeap) Push(x any) {
	h := x.(*host)
	h.retryIndex = len(*q)
	*q = append(*q, h)
}

func (q *retryHeap) Pop() any {
	old := *q
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	h.retryIndex = -1
	return h
}
