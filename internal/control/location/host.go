// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"iter"
	"maps"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Host is an address that members have in one or many groups, with its location; or an
// address that a registration or an envelope is about, a guest.
type Host struct {
	ip              netip.Addr
	location        locate.Location              // the zero value if there is none
	answer          locate.Location              // the location by the kernel's last answer, whether or not h is taken to be there
	dependsOn       locate.Location              // dependencies of the last answer, which may have been that the host is being resolved
	pinned          locate.Location              // the last valid location while it is a member, or has connections; location may have been lost since
	connected       bool                         // true: it has connections by RDMA-CM
	seenElsewhereAt time.Duration                // the time when seenElsewhere was recorded
	seenElsewhere   *dataplane.Origin            // the last origin other than its location that it did not confirm a move to
	hops            []NextHop                    // the next hops on the way to it, if it is behind other switches
	groups          map[address]envelope.KeyID   // the groups that it is a member of, with their keys; of millions of members, so without pointers
	places          map[envelope.KeyID]*place    // places by the keys of groups
	left            map[envelope.KeyID]leftPlace // places by the keys of groups that it has left, and of no others
	routed          map[netip.Addr]struct{}      // groups that have it below, behind another switch
	queued          bool                         // true: it is in hosts.queue
	urgent          bool                         // true: it is in hosts.urgent
	lookupPending   bool                         // a lookup has been submitted
	lookupAgain     bool                         // something has changed since the lookup was submitted
	reresolve       bool                         // the next lookup has the kernel ask all hosts for it
	reresolvedAt    time.Duration                // the time when the last such lookup was wanted
	answered        bool                         // true: there was an answer: lookupErr, at time answeredAt
	lookupErr       error                        // the error of the last answer
	answeredAt      time.Duration                // the time when that answer came
	attempts        int                          // lookups in sequence without a location
	retryAt         time.Duration                // the time when the lookup is repeated, if attempts > 0
	retryIndex      int                          // index in hosts.unanswered, or -1
	onGuestList     bool                         // true: it is in hosts.guests
	lastUsed        time.Duration                // last use by a registration or an envelope

	waitingGroups map[netip.Addr]Missing            // the answers that registrations wait for, by group
	proven        map[envelope.KeyID]provenLocation // the location that it has confirmed, by key
}

// IsMember reports whether h is a member of a group.
func (h *Host) IsMember() bool { return len(h.groups) > 0 }

// isPinned reports whether h keeps the location that it has, whatever strangers' frames say.
func (h *Host) isPinned() bool { return h.IsMember() || h.connected }

// isWanted reports whether a registration or an envelope waits for the location of h.
func (h *Host) isWanted(now time.Duration) bool { return h.lastUsed > 0 && now-h.lastUsed < wantedTime }

// Missing is what a registration waits for at a host: its location, or, with proof,
// its confirmation of the location under the registration's key.
type Missing struct {
	Proof bool
	Key   envelope.KeyID
}

// IP returns the address of h.
func (h *Host) IP() netip.Addr { return h.ip }

// At returns the location of h; the zero value if it has none.
func (h *Host) At() locate.Location { return h.location }

// Pinned returns the last valid location of h while it is a member, or has connections.
func (h *Host) Pinned() locate.Location { return h.pinned }

// Place returns where h is in the groups of a key; ok is false if it is in none.
func (h *Host) Place(key envelope.KeyID) (at locate.Location, ok bool) {
	p := h.places[key]
	if p == nil {
		return at, false
	}
	return p.at, true
}

// Groups returns the groups that h is a member of.
func (h *Host) Groups() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for group := range h.groups {
			if !yield(group.ip()) {
				return
			}
		}
	}
}

// address is an IP address without a zone.
type address [16]byte

func (a address) ip() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// Below returns the groups that have h below, behind another switch.
func (h *Host) Below() iter.Seq[netip.Addr] { return maps.Keys(h.routed) }

// Hops returns the next hops on the way to h, if it is behind other switches.
func (h *Host) Hops() []NextHop { return h.hops }

// Fresh reports whether the kernel has answered about h lately.
func (h *Host) Fresh(now time.Duration) bool { return h.answered && now-h.answeredAt <= maxAnswerAge }

// Err returns the error of the kernel's last answer about h.
func (h *Host) Err() error { return h.lookupErr }

// DropAnswer has the next registration cause a new lookup of h.
func (h *Host) DropAnswer() { h.answered = false }

// Use records a use of h by a registration or an envelope.
func (h *Host) Use(now time.Duration) { h.lastUsed = now }

// Await has the registration of a group wait for an answer about h, unless it waits for one.
func (h *Host) Await(group netip.Addr, a Missing) bool {
	if _, twice := h.waitingGroups[group]; twice {
		return false
	}
	h.waitingGroups[group] = a
	return true
}

// Awaited returns the answer about h that the registration of a group waits for.
func (h *Host) Awaited(group netip.Addr) (a Missing, waits bool) {
	a, waits = h.waitingGroups[group]
	return a, waits
}

// AwaitNoMore ends that.
func (h *Host) AwaitNoMore(group netip.Addr) { delete(h.waitingGroups, group) }
