// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

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
	h     *Host
	until time.Duration
}

// Guest returns the host of an address that an envelope is about, which it adds if needed; nil if there are too many
// guests.
func (x *Hosts) Guest(ip netip.Addr, now time.Duration) *Host {
	if x.byIP[ip] == nil && len(x.guests) >= maxGuests {
		return nil
	}
	return x.Candidate(ip, now)
}

// Candidate returns the host of an address that a registration has, which it adds if needed.
func (x *Hosts) Candidate(ip netip.Addr, now time.Duration) *Host {
	h := x.byIP[ip]
	if h == nil {
		h = x.add(ip)
	}
	h.lastUsed = now
	if !h.isPinned() {
		x.listGuest(h, now)
	}
	return h
}

// listGuest puts h on the list of hosts that expire after guestTTL.
func (x *Hosts) listGuest(h *Host, now time.Duration) {
	if !h.onGuestList {
		h.onGuestList = true
		x.guests = append(x.guests, guest{h, now + guestTTL})
	}
}

// Request has h looked up soon.
func (x *Hosts) Request(h *Host, now time.Duration) {
	if h.retryIndex < 0 || h.retryAt > now+wantedRetry {
		x.enqueueUrgent(h)
	}
}

// RequestOnce has h looked up, unless that is repeated by itself.
func (x *Hosts) RequestOnce(h *Host) {
	if h.retryIndex < 0 {
		x.enqueueUrgent(h)
	}
}

// Advance begins an iteration of the control loop: it forgets guests that have not been used for guestTTL.
func (x *Hosts) Advance(now time.Duration) {
	x.now = now
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

// setHops records the next hops of h, which is behind other switches; none if it is not.
func (x *Hosts) setHops(h *Host, hops []NextHop) {
	was := h.dependencies()
	h.hops = hops
	x.changeDependencies(h, was)
}

// isKept reports whether h is remembered without being asked for.
func (h *Host) isKept() bool { return h.isPinned() || len(h.routed) > 0 }

// Route keeps a host that is a group's member below, behind another switch, if routes are watched.
func (x *Hosts) Route(group, ip netip.Addr) {
	if x.routes == nil {
		return
	}
	h := x.byIP[ip]
	if h == nil {
		h = x.add(ip)
		x.LookUp(h)
	}
	if h.routed == nil {
		h.routed = make(map[netip.Addr]struct{})
	}
	h.routed[group] = struct{}{}
}

// Unroute ends that.
func (x *Hosts) Unroute(group, ip netip.Addr) {
	h := x.byIP[ip]
	if h == nil {
		return
	}
	if delete(h.routed, group); !h.isKept() {
		h.lastUsed = x.now
		x.listGuest(h, x.now)
	}
}

// retryHeap is a heap of hosts without an answer, by the time of the next lookup.
type retryHeap []*Host

func (q *retryHeap) put(h *Host) {
	if h.retryIndex >= 0 {
		heap.Fix(q, h.retryIndex)
		return
	}
	heap.Push(q, h)
}

func (q *retryHeap) remove(h *Host) {
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
	h := x.(*Host)
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
