// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"container/heap"
	"net/netip"
	"time"
)

// Hosts that are not members. Registrations and envelopes need their locations; a
// location is kept for a while and follows changes like those of members.

const (
	// guestTTL is how long a guest is remembered after its last use.
	guestTTL = 5 * time.Second
	// maxGuests bounds the guests that envelopes add. Registrations add as many as their
	// limits admit.
	maxGuests = 4096
	// maxAnswerAge is the greatest age of an answer that a registration relies on.
	maxAnswerAge = time.Second
)

// guest is an entry of the list of hosts that expire.
type guest struct {
	h     *host
	until time.Duration
}

// guest returns the host of that address, which it adds if needed; nil if that would make
// more than room guests.
func (x *hosts) guest(ip netip.Addr, room int, now time.Duration) *host {
	h := x.byIP[ip]
	if h == nil {
		if len(x.guests) >= room {
			return nil
		}
		h = x.add(ip)
	}
	h.lastUsed = now
	if !h.isPinned() {
		x.listGuest(h, now)
	}
	return h
}

// listGuest puts h on the list of hosts that expire after guestTTL.
func (x *hosts) listGuest(h *host, now time.Duration) {
	if !h.onGuestList {
		h.onGuestList = true
		x.guests = append(x.guests, guest{h, now + guestTTL})
	}
}

// expireGuests forgets guests that have not been used for guestTTL.
func (x *hosts) expireGuests(now time.Duration) {
	for len(x.guests) > 0 && x.guests[0].until <= now {
		h := x.guests[0].h
		x.guests = x.guests[1:]
		h.onGuestList = false
		switch {
		case h.isKept() || x.byIP[h.ip] != h:
		case len(h.waitingGroups) > 0 || h.lastUsed+guestTTL > now:
			x.listGuest(h, now)
		default:
			x.forget(h)
		}
	}
}

// retryHeap is a heap of hosts without an answer, by the time of the next lookup.
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
